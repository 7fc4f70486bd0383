"""The replicated log in Apache Kafka, or in what speaks its protocol."""
