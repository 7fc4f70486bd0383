// Driver of the conformance kit around a client in Go: JSON lines in, JSON lines out.
//
// Fill in the methods of Client; an operation that your client does not have stays as it is.
// Then run:  go build -o driver . && lance-conformance client --exec ./driver
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// ErrUnsupported says that the client has no such operation, or no such option.
var ErrUnsupported = errors.New("unsupported")

// Failed says that an operation failed. Kind is retriable, redirect, auth, fatal, protocol, closed or
// timeout; the documentation of the kit says which error code is which kind.
type Failed struct{ Kind, Text string }

func (f *Failed) Error() string { return f.Text }

// Topic has a number and a name: use either.
type Topic struct {
	ID   uint32 `json:"id"`
	Name string `json:"name"`
}

// Record is one record of a batch.
type Record struct {
	Type  byte   `json:"type"`
	Value []byte `json:"value"` // encoding/json reads and writes Base64
}

// Settings are those of connect. Timeout is in seconds, for each operation that follows.
type Settings struct {
	Host    string  `json:"host"`
	Port    int     `json:"port"`
	Dialect string  `json:"dialect"`
	Timeout float64 `json:"timeout"`
}

// known has the options of connect that your client knows; add token, tls, ca, keepalive if it has them.
var known = map[string]bool{"id": true, "op": true, "host": true, "port": true, "dialect": true, "timeout": true}

// Client is your client.
type Client struct{ settings Settings }

// Connect may connect now, or leave that to the first request.
func Connect(settings Settings) (*Client, error) { return &Client{settings}, nil }

// Send sends one batch, and returns when it is acknowledged.
func (c *Client) Send(topic Topic, records []Record) error { return ErrUnsupported }

// SendAsync sends one batch without waiting; it returns a number that Flush tells about.
func (c *Client) SendAsync(topic Topic, records []Record) (int, error) { return 0, ErrUnsupported }

// Flush returns the numbers of all batches since the last flush: acknowledged, and failed.
func (c *Client) Flush() (acked []int, failed map[int]*Failed, err error) {
	return nil, nil, ErrUnsupported
}

// CreateTopic creates a topic, with limits where they are not nil.
func (c *Client) CreateTopic(name string, maxAgeSecs, maxBytes *uint64) (Topic, error) {
	return Topic{}, ErrUnsupported
}

// ListTopics returns all topics.
func (c *Client) ListTopics() ([]Topic, error) { return nil, ErrUnsupported }

// GetTopic returns one topic.
func (c *Client) GetTopic(id uint32) (Topic, error) { return Topic{}, ErrUnsupported }

// DeleteTopic deletes a topic.
func (c *Client) DeleteTopic(id uint32) error { return ErrUnsupported }

// SetRetention limits a topic.
func (c *Client) SetRetention(id uint32, maxAgeSecs, maxBytes uint64) error { return ErrUnsupported }

// Fetch reads once; it returns the records and the offset after them.
func (c *Client) Fetch(topic Topic, offset uint64, maxBytes uint32) ([]Record, uint64, error) {
	return nil, 0, ErrUnsupported
}

// Subscribe begins to read.
func (c *Client) Subscribe(topic Topic, offset uint64, maxBytes uint32, consumer string) error {
	return ErrUnsupported
}

// Poll returns the next records of the subscription; none when none come in time.
func (c *Client) Poll() ([]Record, error) { return nil, ErrUnsupported }

// Commit commits an offset of the subscription at the server.
func (c *Client) Commit(offset uint64) error { return ErrUnsupported }

// Close ends the client; the next operation is another connect.
func (c *Client) Close() error { return nil }

// -- the protocol of the kit, which needs no change -----------------------------------------------

type request struct {
	ID         int      `json:"id"`
	Op         string   `json:"op"`
	Topic      Topic    `json:"topic"`
	Records    []Record `json:"records"`
	Name       string   `json:"name"`
	TopicID    uint32   `json:"topic_id"`
	Offset     uint64   `json:"offset"`
	MaxAgeSecs *uint64  `json:"max_age_secs"`
	MaxBytes   *uint64  `json:"max_bytes"`
	Consumer   string   `json:"consumer"`
}

type object = map[string]any

var client *Client

func connect(line []byte) error {
	var options map[string]json.RawMessage
	if err := json.Unmarshal(line, &options); err != nil {
		return err
	}
	for name := range options {
		if !known[name] {
			return ErrUnsupported
		}
	}
	var settings Settings
	if err := json.Unmarshal(line, &settings); err != nil {
		return err
	}
	made, err := Connect(settings)
	client = made
	return err
}

func carriedOut(ask request, line []byte) (any, error) {
	if ask.Op == "connect" {
		return object{}, connect(line)
	}
	if ask.Op == "close" {
		last := client
		client = nil
		if last == nil {
			return object{}, nil
		}
		return object{}, last.Close()
	}
	if client == nil {
		return nil, ErrUnsupported
	}
	return performed(client, ask)
}

func performed(c *Client, ask request) (any, error) {
	switch ask.Op {
	case "send":
		return object{}, c.Send(ask.Topic, ask.Records)
	case "send_async":
		ticket, err := c.SendAsync(ask.Topic, ask.Records)
		return object{"ticket": ticket}, err
	case "flush":
		return flushed(c)
	case "create_topic":
		return c.CreateTopic(ask.Name, ask.MaxAgeSecs, ask.MaxBytes)
	case "list_topics":
		topics, err := c.ListTopics()
		return object{"topics": topics}, err
	case "get_topic":
		return c.GetTopic(ask.TopicID)
	case "delete_topic":
		return object{}, c.DeleteTopic(ask.TopicID)
	case "set_retention":
		return object{}, c.SetRetention(ask.TopicID, *ask.MaxAgeSecs, *ask.MaxBytes)
	case "fetch":
		records, after, err := c.Fetch(ask.Topic, ask.Offset, uint32(*ask.MaxBytes))
		return object{"records": listed(records), "next_offset": after}, err
	case "subscribe":
		return object{}, c.Subscribe(ask.Topic, ask.Offset, uint32(*ask.MaxBytes), ask.Consumer)
	case "poll":
		records, err := c.Poll()
		return object{"records": listed(records)}, err
	case "commit":
		return object{}, c.Commit(ask.Offset)
	}
	return nil, ErrUnsupported
}

func flushed(c *Client) (any, error) {
	acked, failed, err := c.Flush()
	told := []object{}
	for ticket, why := range failed {
		told = append(told, object{"ticket": ticket, "kind": why.Kind, "text": why.Text})
	}
	return object{"acked": append([]int{}, acked...), "failed": told}, err
}

// listed keeps encoding/json from writing null for no records.
func listed(records []Record) []Record { return append([]Record{}, records...) }

func answered(line []byte) (object, error) {
	var ask request
	if err := json.Unmarshal(line, &ask); err != nil {
		return nil, err
	}
	result, err := carriedOut(ask, line)
	var failed *Failed
	switch {
	case err == nil:
		return object{"id": ask.ID, "ok": result}, nil
	case errors.Is(err, ErrUnsupported):
		return object{"id": ask.ID, "unsupported": true}, nil
	case errors.As(err, &failed):
		return object{"id": ask.ID, "error": object{"kind": failed.Kind, "text": failed.Text}}, nil
	}
	return nil, err
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 64<<20)
	output := json.NewEncoder(os.Stdout)
	for input.Scan() {
		answer, err := answered(input.Bytes())
		if err == nil {
			err = output.Encode(answer)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "driver:", err)
			os.Exit(1)
		}
	}
}
