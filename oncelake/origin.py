"""Sees that Kafka's topics stay those that a run began with.

A topic that is deleted and made anew has its former name and other records. Spark goes on with it,
at the offsets where it stood, and would leave out what is before them. So the ids are asked for
once more when a batch's rows have been read, and before anything of them is published: rows of
another topic come too late for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event

from confluent_kafka import KafkaException, TopicCollection

from oncelake import client
from oncelake.errors import KafkaUnreachable, TopicMissing, TransientError
from oncelake.model import Origin
from oncelake.refusals import refuse_changed_source

ANSWER_SECONDS = 15.0
# How long a broker that is away, or does not know its topics yet, is waited for.
PAUSES = (0.5, 2.0, 5.0, 10.0)


class OriginWatch:
    """Knows the topics by their ids, and asks by one client for a whole run."""

    def __init__(self, config: Mapping[str, str], known: Origin) -> None:
        self._known = known
        self._admin = client.admin(config)

    def require_unchanged(self) -> None:
        """Raises SourceChanged where it is not so, and another error where Kafka does not tell."""
        for pause in PAUSES:
            try:
                return self._compare()
            except (KafkaUnreachable, TopicMissing):
                Event().wait(pause)
        return self._compare()

    def refuse_changed(self) -> None:
        """As far as Kafka tells now: whoever asks has failed by something, perhaps by Kafka."""
        try:
            self._compare()
        except (TransientError, TopicMissing):
            return

    def _compare(self) -> None:
        refuse_changed_source(self._known, self._live())

    def _live(self) -> Origin:
        names = list(self._known.topic_ids)
        try:
            cluster = self._admin.describe_cluster(request_timeout=ANSWER_SECONDS)
            topics = self._admin.describe_topics(
                TopicCollection(names), request_timeout=ANSWER_SECONDS
            )
            ids = {name: str(each.result(ANSWER_SECONDS).topic_id) for name, each in topics.items()}
            return Origin(cluster.result(ANSWER_SECONDS).cluster_id, ids)
        except (KafkaException, TimeoutError) as error:
            raise _told(error, ", ".join(names)) from error


def _told(error: Exception, topics: str) -> Exception:
    nothing = "Nothing of the batch was committed"
    if "UNKNOWN_TOPIC_OR_PART" in str(error):
        return TopicMissing(
            f"topic {topics} was deleted while its records were being written. {nothing}. Where it "
            "was made anew, a run says what to type"
        )
    return KafkaUnreachable(
        f"Kafka did not say whether {topics} is the topic it was: {str(error) or 'no answer'}. "
        f"{nothing}: run again when it answers, the table knows where to go on"
    )
