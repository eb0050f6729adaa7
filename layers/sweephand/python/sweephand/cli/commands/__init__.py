"""The commands, and what they share: the client, output, exit statuses."""
