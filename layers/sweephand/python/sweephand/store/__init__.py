"""All that knows DynamoDB, and the bucket of files."""
