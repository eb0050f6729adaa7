"""All that knows DynamoDB."""
