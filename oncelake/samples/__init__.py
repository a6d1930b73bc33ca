"""Sample data: news articles, and the producer that sends them to Kafka."""
