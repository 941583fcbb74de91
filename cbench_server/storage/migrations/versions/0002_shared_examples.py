"""Examples that a run shares with the run they were stored for."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table that names whose examples a run has."""
    if op.get_context().dialect.name == "postgresql":
        return  # It came with 0003.
    op.create_table(
        "shared_examples",
        sa.Column("run", sa.Integer(), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("owner", sa.Integer(), sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("sum", sa.BigInteger(), nullable=False),
    )
    op.create_index("examples_owner", "shared_examples", ["owner"])
