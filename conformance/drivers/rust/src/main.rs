//! Driver of the conformance kit around the published Rust client, `lnc-client` 0.2.8.
//!
//!     cargo build --locked --manifest-path conformance/drivers/rust/Cargo.toml --target-dir FOLDER
//!     lance-conformance client --exec FOLDER/debug/lance-conformance-driver --dialect deployed

use std::io::{BufRead, Write, stdin, stdout};
use std::time::Duration;

use bytes::Bytes;
use lnc_client::record::encode_record_with_type;
use lnc_client::{ClientConfig, ClientError, LanceClient, TopicInfo, parse_records};
use serde_json::{Value, json};

const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[derive(Default)]
struct Driver {
    config: ClientConfig,
    client: Option<LanceClient>,
    reading: (u32, u64, u32),
    consumer: u64,
}

#[tokio::main]
async fn main() {
    let mut driver = Driver::default();
    for line in stdin().lock().lines().map_while(Result::ok) {
        let Ok(request) = serde_json::from_str::<Value>(&line) else { return };
        let mut answer = match driver.carry_out(&request).await {
            Ok(Some(result)) => json!({"ok": result}),
            Ok(None) => json!({"unsupported": true}),
            Err(error) => json!({"error": {"kind": kind(&error), "text": error.to_string()}}),
        };
        answer["id"] = request["id"].clone();
        println!("{answer}");
        let _ = stdout().flush();
    }
}

impl Driver {
    async fn carry_out(&mut self, request: &Value) -> Result<Option<Value>, ClientError> {
        let number = |name: &str| request[name].as_u64().unwrap_or(0);
        let topic = request["topic"]["id"].as_u64().unwrap_or(number("topic_id")) as u32;
        let name = request["name"].as_str().unwrap_or_default();
        let limits = (number("max_age_secs"), number("max_bytes"));
        let result = match request["op"].as_str().unwrap_or_default() {
            "connect" => return Ok(self.connect(request)),
            "send" => {
                let (data, count) = batch(&request["records"]);
                self.client().await?.send_ingest_to_topic_sync(topic, data, count, None).await?;
                json!({})
            }
            "create_topic" if request["max_bytes"].is_u64() => {
                let client = self.client().await?;
                told(&client.create_topic_with_retention(name, limits.0, limits.1).await?)
            }
            "create_topic" => told(&self.client().await?.create_topic(name).await?),
            "list_topics" => {
                let topics = self.client().await?.list_topics().await?;
                json!({"topics": topics.iter().map(told).collect::<Value>()})
            }
            "get_topic" => told(&self.client().await?.get_topic(topic).await?),
            "delete_topic" => {
                self.client().await?.delete_topic(topic).await?;
                json!({})
            }
            "set_retention" => {
                self.client().await?.set_retention(topic, limits.0, limits.1).await?;
                json!({})
            }
            "fetch" => self.fetch(topic, number("offset"), limits.1 as u32).await?,
            "subscribe" => {
                self.reading = (topic, number("offset"), limits.1 as u32);
                self.consumer = 1992;
                json!({})
            }
            "poll" => {
                let (topic, offset, most) = self.reading;
                let found = self.fetch(topic, offset, most).await?;
                self.reading.1 = found["next_offset"].as_u64().unwrap_or(offset);
                found
            }
            "commit" => {
                let (topic, consumer) = (self.reading.0, self.consumer);
                self.client().await?.commit_offset(topic, consumer, number("offset")).await?;
                json!({})
            }
            "close" => {
                self.client = None;
                json!({})
            }
            _ => return Ok(None),
        };
        Ok(Some(result))
    }

    fn connect(&mut self, request: &Value) -> Option<Value> {
        if ["token", "tls", "keepalive"].iter().any(|name| !request[name].is_null()) {
            return None;
        }
        let address = format!("{}:{}", request["host"].as_str()?, request["port"]);
        let timeout = Duration::from_secs_f64(request["timeout"].as_f64()?);
        self.config = ClientConfig::new(address);
        self.config.connect_timeout = timeout;
        self.config.read_timeout = timeout;
        self.config.write_timeout = timeout;
        Some(json!({}))
    }

    async fn client(&mut self) -> Result<&mut LanceClient, ClientError> {
        if self.client.is_none() {
            self.client = Some(LanceClient::connect(self.config.clone()).await?);
        }
        self.client.as_mut().ok_or(ClientError::ConnectionClosed)
    }

    async fn fetch(&mut self, topic: u32, offset: u64, most: u32) -> Result<Value, ClientError> {
        let found = self.client().await?.fetch(topic, offset, most).await?;
        let whole = whole_records(&found.data);
        let next = if whole == 0 { found.next_offset } else { offset + whole as u64 };
        let records = parse_records(found.data.slice(..whole))
            .map_err(|error| ClientError::ProtocolError(error.to_string()))?
            .iter()
            .map(|each| json!({"type": each.type_byte, "value": encoded(&each.payload)}))
            .collect::<Value>();
        Ok(json!({"records": records, "next_offset": next}))
    }
}

fn batch(records: &Value) -> (Bytes, u32) {
    let mut data = Vec::new();
    let mut count = 0;
    for each in records.as_array().into_iter().flatten() {
        let value = decoded(each["value"].as_str().unwrap_or_default());
        data.extend_from_slice(&encode_record_with_type(each["type"].as_u64().unwrap_or(0) as u8, &value));
        count += 1;
    }
    (Bytes::from(data), count)
}

/// Where the last whole record ends: the crate hands data out as it came, and refuses to parse a cut.
fn whole_records(data: &[u8]) -> usize {
    let mut end = 0;
    while let Some(length) = data.get(end + 1..end + 5) {
        let value = length.iter().rev().fold(0_usize, |sum, &byte| sum << 8 | usize::from(byte));
        if end + 5 + value > data.len() {
            break;
        }
        end += 5 + value;
    }
    end
}

fn told(info: &TopicInfo) -> Value {
    json!({"id": info.id, "name": info.name})
}

fn kind(error: &ClientError) -> &'static str {
    match error {
        ClientError::ConnectionFailed(_) | ClientError::ConnectionClosed | ClientError::IoError(_) => "closed",
        ClientError::ProtocolError(_) | ClientError::InvalidResponse(_) | ClientError::CrcMismatch { .. } => "protocol",
        ClientError::Timeout => "timeout",
        ClientError::NotLeader { .. } => "redirect",
        other if other.is_retryable() => "retriable",
        _ => "fatal",
    }
}

fn encoded(data: &[u8]) -> String {
    let mut text = String::new();
    for part in data.chunks(3) {
        let bits = (0..3).fold(0_u32, |sum, at| sum << 8 | u32::from(*part.get(at).unwrap_or(&0)));
        for at in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * at) & 63) as usize] as char;
            text.push(if at <= part.len() { letter } else { '=' });
        }
    }
    text
}

fn decoded(text: &str) -> Vec<u8> {
    let (mut data, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for value in text.bytes().filter_map(|b| ALPHABET.iter().position(|&known| known == b)) {
        bits = bits << 6 | value as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            data.push((bits >> held) as u8);
        }
    }
    data
}
