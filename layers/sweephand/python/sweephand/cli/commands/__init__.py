"""The commands, and the parts they share: client, output and exit statuses."""
