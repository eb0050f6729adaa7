"""Makes the generated tables, pictures and schemas of the documentation, and the source of its site."""
