"""Actions on queues and topics of Azure, and the redirects of their messages to SQS or SNS."""
