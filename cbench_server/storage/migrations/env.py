"""Runs migrations over the connection that storage/migrate.py passes in, all or none."""

from alembic import context

from cbench_server.durable import failpoints
from cbench_server.storage.schema import metadata

# Alembic takes SQLite for a database that cannot change tables in a transaction, and would commit
# after each migration.
context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
    failpoints.hit("migrate.before")
