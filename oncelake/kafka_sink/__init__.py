"""Spark into Kafka, exactly once, by Kafka's transactions; for clusters without see offsets.

1. Fence. A run takes over the sink's plan by its transactional id: Kafka refuses the former run
   from then on. It ends what that has left open in the slots, and reads how far each has come.
2. Place. What Spark offers is compared with the last plan, by the source's own offsets.
3. Plan. Before anything of a batch is sent, its offsets and its slots are written down.
4. Send. Each slot is one transaction of one task: its rows, and a receipt (see send).
5. A batch is done when each slot has its receipt; until then every run sends the same plan.
"""
