//! Drives the published Rust client: `lance-interop-driver HOST:PORT COMMAND [ARGUMENTS]`.
//!
//! Each run does one thing and prints one JSON value; an error goes to stderr, with exit code 1.

use std::error::Error;
use std::io::{BufRead, stdin};
use std::path::Path;

use bytes::Bytes;
use lnc_client::record::encode_record_with_type;
use lnc_client::{
    ClientConfig, Consumer, ConsumerConfig, LanceClient, Producer, ProducerConfig,
    StandaloneConfig, StandaloneConsumer, TopicInfo, parse_records,
};
use serde_json::{Value, json};

type Answer = Result<Value, Box<dyn Error>>;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words).await {
        Ok(answer) => println!("{answer}"),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}

async fn run(words: &[&str]) -> Answer {
    match *words {
        [at, "create", name] => Ok(topic(&connect(at).await?.create_topic(name).await?)),
        [at, "create-with-retention", name, age, size] => {
            let mut client = connect(at).await?;
            let made = client.create_topic_with_retention(name, age.parse()?, size.parse()?);
            Ok(topic(&made.await?))
        }
        [at, "set-retention", id, age, size] => {
            let mut client = connect(at).await?;
            client.set_retention(id.parse()?, age.parse()?, size.parse()?).await?;
            Ok(Value::Null)
        }
        [at, "list"] => Ok(connect(at).await?.list_topics().await?.iter().map(topic).collect()),
        [at, "get", id] => Ok(topic(&connect(at).await?.get_topic(id.parse()?).await?)),
        [at, "delete", id] => {
            connect(at).await?.delete_topic(id.parse()?).await?;
            Ok(Value::Null)
        }
        [at, "ping", count] => ping(at, count.parse()?).await,
        [at, "status"] => status(at).await,
        [at, "produce", id, kind] => produce(at, id.parse()?, kind.parse()?).await,
        [at, "send-each", id] => send_each(at, id.parse()?).await,
        [at, "follow", id, count] => follow(at, id.parse()?, count.parse()?).await,
        [at, "pipeline", id, count] => pipeline(at, id.parse()?, count.parse()?).await,
        [at, "consume", id, fetch] => consume(at, id.parse()?, fetch.parse()?).await,
        [at, "standalone", id, name, folder] => standalone(at, id.parse()?, name, folder).await,
        [at, "subscribe", id, consumer, from, commit] => {
            subscribe(at, id.parse()?, consumer.parse()?, from.parse()?, commit.parse()?).await
        }
        _ => Err(format!("no such command: {}", words.join(" ")).into()),
    }
}

async fn connect(at: &str) -> Result<LanceClient, Box<dyn Error>> {
    Ok(LanceClient::connect(ClientConfig::new(at)).await?)
}

fn topic(info: &TopicInfo) -> Value {
    json!({"id": info.id, "name": info.name, "epoch": info.topic_epoch})
}

async fn ping(at: &str, count: usize) -> Answer {
    let mut client = connect(at).await?;
    let mut slowest = 0.0_f64;
    for _ in 0..count {
        slowest = slowest.max(client.ping().await?.as_secs_f64());
    }
    Ok(json!({"answers": count, "slowest": slowest}))
}

async fn status(at: &str) -> Answer {
    let found = connect(at).await?.get_cluster_status().await?;
    Ok(json!({
        "is_leader": found.is_leader,
        "node_count": found.node_count,
        "quorum_available": found.quorum_available,
    }))
}

/// Lines of stdin become records; the crate's producer adds no TLV header by itself.
async fn produce(at: &str, id: u32, kind: u8) -> Answer {
    let producer = Producer::connect(at, ProducerConfig::new()).await?;
    let mut sent = 0_u64;
    for line in stdin().lock().lines() {
        let record = encode_record_with_type(kind, line?.as_bytes());
        producer.send_async(id, &record).await?;
        sent += 1;
    }
    producer.flush().await?;
    let metrics = producer.metrics();
    producer.close().await?;
    Ok(json!({"sent": sent, "metrics": format!("{metrics:?}")}))
}

/// Each line of stdin is sent by itself, and printed when it is acknowledged.
async fn send_each(at: &str, id: u32) -> Answer {
    let producer = Producer::connect(at, ProducerConfig::new()).await?;
    for line in stdin().lock().lines() {
        let line = line?;
        producer.send(id, &encode_record_with_type(1, line.as_bytes())).await?;
        println!("{line}");
    }
    producer.close().await?;
    Ok(Value::Null)
}

/// Reads until so many records have come, and prints how many there are after each batch.
async fn follow(at: &str, id: u32, count: usize) -> Answer {
    let mut consumer = Consumer::connect(at, ConsumerConfig::new(id)).await?;
    let mut found = Vec::new();
    while found.len() < count {
        if let Some(batch) = consumer.next_batch().await?.filter(|each| !each.is_empty()) {
            found.extend(records(batch.data.to_vec())?);
            println!("{}", found.len());
        }
    }
    Ok(json!({"records": found}))
}

/// All batches are sent before the first acknowledgement is read.
async fn pipeline(at: &str, id: u32, count: u64) -> Answer {
    let mut client = connect(at).await?;
    let mut sent = Vec::new();
    for number in 0..count {
        let record = encode_record_with_type(1, format!("batch {number}").as_bytes());
        sent.push(client.send_ingest_to_topic(id, record, 1, None).await?);
    }
    let mut acked = Vec::new();
    for _ in 0..count {
        acked.push(client.recv_ack().await?);
    }
    Ok(json!({"sent": sent, "acked": acked}))
}

/// Reads to the end with `fetch` bytes at a time, joining what a cut has parted.
async fn consume(at: &str, id: u32, fetch: u32) -> Answer {
    let config = ConsumerConfig::new(id).with_max_fetch_bytes(fetch);
    let mut consumer = Consumer::connect(at, config).await?;
    let mut data = Vec::new();
    let mut fetches = 0;
    while let Some(found) = consumer.next_batch().await? {
        if found.is_empty() {
            break;
        }
        data.extend_from_slice(&found.data);
        fetches += 1;
    }
    Ok(json!({"records": records(data)?, "fetches": fetches, "offset": consumer.current_offset()}))
}

/// Goes on where the consumer of that name stopped, commits, and ends at the end.
async fn standalone(at: &str, id: u32, name: &str, folder: &str) -> Answer {
    let config = StandaloneConfig::new(name, id)
        .with_offset_dir(Path::new(folder))
        .with_manual_commit();
    let mut consumer = StandaloneConsumer::connect(at, config).await?;
    let began = consumer.current_offset();
    let mut data = Vec::new();
    while let Some(found) = consumer.next_batch().await? {
        if found.is_empty() {
            break;
        }
        data.extend_from_slice(&found.data);
        consumer.commit().await?;
    }
    let committed = consumer.committed_offset();
    consumer.close().await?;
    Ok(json!({"began": began, "committed": committed, "records": records(data)?}))
}

async fn subscribe(at: &str, id: u32, consumer: u64, from: u64, commit: u64) -> Answer {
    let mut client = connect(at).await?;
    let begun = client.subscribe(id, from, 65536, consumer).await?;
    client.unsubscribe(id, consumer).await?;
    let done = client.commit_offset(id, consumer, commit).await?;
    Ok(json!({"start": begun.start_offset, "committed": done.committed_offset}))
}

fn records(data: Vec<u8>) -> Result<Vec<Value>, Box<dyn Error>> {
    let found = parse_records(Bytes::from(data))?;
    Ok(found.iter().map(|each| json!([each.type_byte, hex(&each.payload)])).collect())
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}
