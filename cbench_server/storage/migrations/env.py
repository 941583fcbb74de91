"""Runs migrations over the connection that storage/migrate.py passes in."""

from alembic import context

from cbench_server.storage.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
