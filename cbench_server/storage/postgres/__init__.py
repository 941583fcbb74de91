"""The store that several daemons may share: a PostgreSQL database."""
