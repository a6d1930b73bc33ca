"""The enriched table: of each article the newest version, with what was found out about it.

    raw table, at one snapshot → articles that are new → enriched → merged

What is new is told in Kafka's offsets, as everywhere: the raw table's progress says how far it has
come, the enriched table's own how far it has read. Compacting the raw table or expiring its
snapshots moves neither. A row is written only where its content is another than what is there, so
the same articles once more change nothing.
"""
