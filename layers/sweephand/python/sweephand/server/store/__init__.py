"""The only code that knows DynamoDB and the bucket of files."""
