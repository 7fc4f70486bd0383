import java.util.List;
import java.util.Map;
import java.util.Set;

/** Your client. Fill in the methods; an operation that your client does not have stays as it is. */
final class Client {
    /** Options of connect that your client knows; add token, tls, ca, keepalive if it has them. */
    static final Set<String> OPTIONS = Set.of("host", "port", "dialect", "timeout");

    /** The client has no such operation, or no such option. */
    static final class Unsupported extends Exception {}

    /**
     * The operation failed. The kind is retriable, redirect, auth, fatal, protocol, closed or timeout;
     * the documentation of the kit says which error code is which kind.
     */
    static final class Failed extends Exception {
        final String kind;

        Failed(String kind, String text) {
            super(text);
            this.kind = kind;
        }
    }

    /** A topic has a number and a name: use either. */
    record Topic(long id, String name) {}

    record Record(int type, byte[] value) {}

    record Fetched(List<Record> records, long nextOffset) {}

    /** Numbers of all batches since the last flush. */
    record Flushed(List<Long> acked, Map<Long, Failed> failed) {}

    private final Map<String, Object> settings;

    /** May connect now, or with the first request. The timeout is in seconds, for each operation. */
    Client(Map<String, Object> settings) {
        this.settings = settings;
    }

    /** Sends one batch, and returns when it is acknowledged. */
    void send(Topic topic, List<Record> records) throws Unsupported, Failed {
        throw new Unsupported();
    }

    /** Sends one batch without waiting; returns a number that flush tells about. */
    long sendAsync(Topic topic, List<Record> records) throws Unsupported, Failed {
        throw new Unsupported();
    }

    /** Waits until every batch is acknowledged or has failed. */
    Flushed flush() throws Unsupported, Failed {
        throw new Unsupported();
    }

    /** Creates a topic, with limits where they are not null. */
    Topic createTopic(String name, Long maxAgeSecs, Long maxBytes) throws Unsupported, Failed {
        throw new Unsupported();
    }

    List<Topic> listTopics() throws Unsupported, Failed {
        throw new Unsupported();
    }

    Topic getTopic(long id) throws Unsupported, Failed {
        throw new Unsupported();
    }

    void deleteTopic(long id) throws Unsupported, Failed {
        throw new Unsupported();
    }

    void setRetention(long id, long maxAgeSecs, long maxBytes) throws Unsupported, Failed {
        throw new Unsupported();
    }

    /** Reads once. */
    Fetched fetch(Topic topic, long offset, long maxBytes) throws Unsupported, Failed {
        throw new Unsupported();
    }

    /** Begins to read. */
    void subscribe(Topic topic, long offset, long maxBytes, String consumer)
            throws Unsupported, Failed {
        throw new Unsupported();
    }

    /** Returns the next records of the subscription; none when none come in time. */
    List<Record> poll() throws Unsupported, Failed {
        throw new Unsupported();
    }

    /** Commits an offset of the subscription at the server. */
    void commit(long offset) throws Unsupported, Failed {
        throw new Unsupported();
    }

    /** Ends the client; the next operation is another connect. */
    void close() throws Failed {}
}
