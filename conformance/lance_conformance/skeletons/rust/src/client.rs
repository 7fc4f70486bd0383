//! Your client. Fill in the methods; an operation that your client does not have stays as it is.

use serde_json::Value;

/// Why an operation has no result.
pub enum Problem {
    /// The client has no such operation, or no such option.
    Unsupported,
    /// The operation failed. The kind is retriable, redirect, auth, fatal, protocol, closed or
    /// timeout; the documentation of the kit says which error code is which kind.
    #[allow(dead_code)] // until the first operation is filled in
    Failed { kind: &'static str, text: String },
}

use Problem::Unsupported;

pub type Outcome<T> = Result<T, Problem>;

/// A topic has a number and a name: use either.
pub struct Topic {
    pub id: u32,
    pub name: String,
}

pub struct Record {
    pub kind: u8,
    pub value: Vec<u8>,
}

/// What became of all batches since the last flush.
pub struct Flushed {
    pub acked: Vec<u64>,
    /// Number of the batch, kind of the error, and its text.
    pub failed: Vec<(u64, &'static str, String)>,
}

/// Options of connect that your client knows; add token, tls, ca, keepalive if it has them.
pub const OPTIONS: &[&str] = &["host", "port", "dialect", "timeout"];

pub struct Client {
    /// `host`, `port`, `dialect`, and `timeout` in seconds for each operation.
    #[allow(dead_code)] // until the first operation is filled in
    pub settings: Value,
}

#[allow(unused_variables)] // until the first operation is filled in
impl Client {
    /// May connect now, or leave that to the first request.
    pub fn connect(settings: Value) -> Outcome<Client> {
        Ok(Client { settings })
    }

    /// Sends one batch, and returns when it is acknowledged.
    pub fn send(&mut self, topic: Topic, records: Vec<Record>) -> Outcome<()> {
        Err(Unsupported)
    }

    /// Sends one batch without waiting; returns a number that `flush` tells about.
    pub fn send_async(&mut self, topic: Topic, records: Vec<Record>) -> Outcome<u64> {
        Err(Unsupported)
    }

    /// Waits until every batch is acknowledged or has failed.
    pub fn flush(&mut self) -> Outcome<Flushed> {
        Err(Unsupported)
    }

    /// Creates a topic, with limits if there are any.
    pub fn create_topic(
        &mut self,
        name: &str,
        max_age_secs: Option<u64>,
        max_bytes: Option<u64>,
    ) -> Outcome<Topic> {
        Err(Unsupported)
    }

    pub fn list_topics(&mut self) -> Outcome<Vec<Topic>> {
        Err(Unsupported)
    }

    pub fn get_topic(&mut self, id: u32) -> Outcome<Topic> {
        Err(Unsupported)
    }

    pub fn delete_topic(&mut self, id: u32) -> Outcome<()> {
        Err(Unsupported)
    }

    pub fn set_retention(&mut self, id: u32, max_age_secs: u64, max_bytes: u64) -> Outcome<()> {
        Err(Unsupported)
    }

    /// Reads once; returns the records and the offset after them.
    pub fn fetch(
        &mut self,
        topic: Topic,
        offset: u64,
        max_bytes: u64,
    ) -> Outcome<(Vec<Record>, u64)> {
        Err(Unsupported)
    }

    /// Begins to read.
    pub fn subscribe(
        &mut self,
        topic: Topic,
        offset: u64,
        max_bytes: u64,
        consumer: &str,
    ) -> Outcome<()> {
        Err(Unsupported)
    }

    /// Returns the next records of the subscription; none when none come in time.
    pub fn poll(&mut self) -> Outcome<Vec<Record>> {
        Err(Unsupported)
    }

    /// Commits an offset of the subscription at the server.
    pub fn commit(&mut self, offset: u64) -> Outcome<()> {
        Err(Unsupported)
    }

    /// Ends the client; the next operation is another connect.
    pub fn close(self) -> Outcome<()> {
        Ok(())
    }
}
