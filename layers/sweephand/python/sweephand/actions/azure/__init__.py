"""Actions on queues and topics of Azure, and the redirects that lead them to SQS or SNS."""
