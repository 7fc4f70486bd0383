// Driver of the conformance kit around a client in Java: JSON lines in, JSON lines out.
//
// Fill in Client.java; the protocol of the kit, which is here, needs no change.
// Then run:  javac *.java && lance-conformance client --exec "java -cp . Driver"

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Has one client at a time. */
public final class Driver {
    private Client client;

    public static void main(String[] arguments) throws IOException {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        var driver = new Driver();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.println(Json.write(driver.answer(object(Json.read(line)))));
        }
    }

    private Map<String, Object> answer(Map<String, Object> ask) {
        Object id = ask.remove("id");
        String op = (String) ask.remove("op");
        try {
            return Map.of("id", id, "ok", carriedOut(op, ask));
        } catch (Client.Unsupported none) {
            return Map.of("id", id, "unsupported", true);
        } catch (Client.Failed why) {
            return Map.of("id", id, "error", Map.of("kind", why.kind, "text", why.getMessage()));
        }
    }

    private Object carriedOut(String op, Map<String, Object> ask)
            throws Client.Unsupported, Client.Failed {
        if (op.equals("connect")) {
            if (!Client.OPTIONS.containsAll(ask.keySet())) {
                throw new Client.Unsupported();
            }
            client = new Client(ask);
            return Map.of();
        }
        if (op.equals("close")) {
            Client last = client;
            client = null;
            if (last != null) {
                last.close();
            }
            return Map.of();
        }
        if (client == null) {
            throw new Client.Unsupported();
        }
        return performed(op, ask);
    }

    private Object performed(String op, Map<String, Object> ask)
            throws Client.Unsupported, Client.Failed {
        switch (op) {
            case "send":
                client.send(topic(ask), records(ask));
                break;
            case "send_async":
                return Map.of("ticket", client.sendAsync(topic(ask), records(ask)));
            case "flush":
                return flushed(client.flush());
            case "create_topic":
                var limits = new Long[] {(Long) ask.get("max_age_secs"), (Long) ask.get("max_bytes")};
                return shown(client.createTopic((String) ask.get("name"), limits[0], limits[1]));
            case "list_topics":
                return Map.of("topics", client.listTopics().stream().map(Driver::shown).toList());
            case "get_topic":
                return shown(client.getTopic(number(ask, "topic_id")));
            case "delete_topic":
                client.deleteTopic(number(ask, "topic_id"));
                break;
            case "set_retention":
                client.setRetention(
                        number(ask, "topic_id"), number(ask, "max_age_secs"), number(ask, "max_bytes"));
                break;
            case "fetch":
                var found = client.fetch(topic(ask), number(ask, "offset"), number(ask, "max_bytes"));
                return Map.of("records", encoded(found.records()), "next_offset", found.nextOffset());
            case "subscribe":
                client.subscribe(
                        topic(ask),
                        number(ask, "offset"),
                        number(ask, "max_bytes"),
                        (String) ask.get("consumer"));
                break;
            case "poll":
                return Map.of("records", encoded(client.poll()));
            case "commit":
                client.commit(number(ask, "offset"));
                break;
            default:
                throw new Client.Unsupported();
        }
        return Map.of();
    }

    private static Object flushed(Client.Flushed found) {
        var failed = new ArrayList<Object>();
        for (var each : found.failed().entrySet()) {
            var why = each.getValue();
            failed.add(Map.of("ticket", each.getKey(), "kind", why.kind, "text", why.getMessage()));
        }
        return Map.of("acked", found.acked(), "failed", failed);
    }

    @SuppressWarnings("unchecked") // JSON has no types
    private static Map<String, Object> object(Object value) {
        return (Map<String, Object>) value;
    }

    private static long number(Map<String, Object> ask, String name) {
        return (Long) ask.get(name);
    }

    private static Client.Topic topic(Map<String, Object> ask) {
        var told = object(ask.get("topic"));
        return new Client.Topic(number(told, "id"), (String) told.get("name"));
    }

    private static Map<String, Object> shown(Client.Topic topic) {
        return Map.of("id", topic.id(), "name", topic.name());
    }

    private static List<Client.Record> records(Map<String, Object> ask) {
        var found = new ArrayList<Client.Record>();
        for (Object each : (List<?>) ask.get("records")) {
            var told = object(each);
            byte[] value = Base64.getDecoder().decode((String) told.get("value"));
            found.add(new Client.Record((int) number(told, "type"), value));
        }
        return found;
    }

    private static List<Object> encoded(List<Client.Record> records) {
        var told = new ArrayList<Object>();
        for (var each : records) {
            String value = Base64.getEncoder().encodeToString(each.value());
            told.add(Map.of("type", each.type(), "value", value));
        }
        return told;
    }

    /** As much of JSON as the kit needs: it writes one object a line, without errors. */
    static final class Json {
        private final String text;
        private int at;

        private Json(String text) {
            this.text = text;
        }

        static Object read(String text) {
            return new Json(text).value();
        }

        private Object value() {
            blanks();
            switch (text.charAt(at)) {
                case '{':
                    return members();
                case '[':
                    return items();
                case '"':
                    return string();
                default:
                    return word();
            }
        }

        private void blanks() {
            while (Character.isWhitespace(text.charAt(at))) {
                at++;
            }
        }

        /** Goes past the character if it comes next. */
        private boolean next(char wanted) {
            blanks();
            boolean found = text.charAt(at) == wanted;
            at += found ? 1 : 0;
            return found;
        }

        private Map<String, Object> members() {
            var found = new LinkedHashMap<String, Object>();
            at++;
            while (!next('}')) {
                next(',');
                blanks();
                String name = string();
                next(':');
                found.put(name, value());
            }
            return found;
        }

        private List<Object> items() {
            var found = new ArrayList<Object>();
            at++;
            while (!next(']')) {
                next(',');
                found.add(value());
            }
            return found;
        }

        private String string() {
            var found = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                found.append(text.charAt(at) == '\\' ? escaped() : text.charAt(at));
            }
            at++;
            return found.toString();
        }

        private char escaped() {
            char letter = text.charAt(++at);
            if (letter == 'u') {
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 3, at + 1), 16);
            }
            int place = "bfnrt".indexOf(letter);
            return place < 0 ? letter : "\b\f\n\r\t".charAt(place);
        }

        private Object word() {
            int begin = at;
            while (at < text.length() && ",]} ".indexOf(text.charAt(at)) < 0) {
                at++;
            }
            String word = text.substring(begin, at);
            switch (word) {
                case "true":
                    return true;
                case "false":
                    return false;
                case "null":
                    return null;
                default:
                    return word.matches("-?\\d+")
                            ? (Object) Long.parseUnsignedLong(word)
                            : (Object) Double.parseDouble(word);
            }
        }

        static String write(Object value) {
            if (value instanceof Map<?, ?> members) {
                var parts = members.entrySet().stream()
                        .map(each -> write(each.getKey()) + ": " + write(each.getValue()));
                return "{" + String.join(", ", parts.toList()) + "}";
            }
            if (value instanceof List<?> items) {
                return "[" + String.join(", ", items.stream().map(Json::write).toList()) + "]";
            }
            if (value instanceof Long number) { // offsets beyond 2 to the power of 63 are negative in Java
                return Long.toUnsignedString(number);
            }
            return value instanceof String text ? quoted(text) : String.valueOf(value);
        }

        private static String quoted(String text) {
            var found = new StringBuilder("\"");
            for (char each : text.toCharArray()) {
                if (each == '"' || each == '\\') {
                    found.append('\\').append(each);
                } else if (each < ' ' || each > '~') {
                    found.append(String.format("\\u%04x", (int) each));
                } else {
                    found.append(each);
                }
            }
            return found.append('"').toString();
        }
    }
}
