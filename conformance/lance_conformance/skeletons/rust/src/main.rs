//! Driver of the conformance kit around a client in Rust: JSON lines in, JSON lines out.
//!
//! Fill in client.rs; the protocol of the kit, which is here, needs no change.
//! Then run:  cargo build && lance-conformance client --exec target/debug/driver

mod client;

use std::io::{stdin, stdout, BufRead, Write};

use base64::{engine::general_purpose::STANDARD, Engine};
use client::{Client, Outcome, Problem, Record, Topic, OPTIONS};
use serde_json::{json, Value};

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn topic(ask: &Value) -> Topic {
    Topic {
        id: number(&ask["topic"]["id"]) as u32,
        name: text(&ask["topic"]["name"]).to_string(),
    }
}

fn shown(topic: Topic) -> Value {
    json!({"id": topic.id, "name": topic.name})
}

fn records(ask: &Value) -> Vec<Record> {
    let decode = |each: &Value| Record {
        kind: number(&each["type"]) as u8,
        value: STANDARD.decode(text(&each["value"])).expect("Base64"),
    };
    ask["records"]
        .as_array()
        .expect("a list")
        .iter()
        .map(decode)
        .collect()
}

fn encoded(records: Vec<Record>) -> Vec<Value> {
    let encode = |each: &Record| json!({"type": each.kind, "value": STANDARD.encode(&each.value)});
    records.iter().map(encode).collect()
}

fn performed(client: &mut Client, ask: &Value) -> Outcome<Value> {
    match text(&ask["op"]) {
        "send" => client.send(topic(ask), records(ask))?,
        "send_async" => {
            return Ok(json!({"ticket": client.send_async(topic(ask), records(ask))?}));
        }
        "flush" => {
            let flushed = client.flush()?;
            let tell = |(ticket, kind, text): &(u64, &str, String)| json!({"ticket": ticket, "kind": kind, "text": text});
            let failed: Vec<Value> = flushed.failed.iter().map(tell).collect();
            return Ok(json!({"acked": flushed.acked, "failed": failed}));
        }
        "create_topic" => {
            let (age, bytes) = (ask["max_age_secs"].as_u64(), ask["max_bytes"].as_u64());
            return Ok(shown(client.create_topic(
                text(&ask["name"]),
                age,
                bytes,
            )?));
        }
        "list_topics" => {
            let topics: Vec<Value> = client.list_topics()?.into_iter().map(shown).collect();
            return Ok(json!({"topics": topics}));
        }
        "get_topic" => return Ok(shown(client.get_topic(number(&ask["topic_id"]) as u32)?)),
        "delete_topic" => client.delete_topic(number(&ask["topic_id"]) as u32)?,
        "set_retention" => client.set_retention(
            number(&ask["topic_id"]) as u32,
            number(&ask["max_age_secs"]),
            number(&ask["max_bytes"]),
        )?,
        "fetch" => {
            let (offset, most) = (number(&ask["offset"]), number(&ask["max_bytes"]));
            let (found, after) = client.fetch(topic(ask), offset, most)?;
            return Ok(json!({"records": encoded(found), "next_offset": after}));
        }
        "subscribe" => {
            let (offset, most) = (number(&ask["offset"]), number(&ask["max_bytes"]));
            client.subscribe(topic(ask), offset, most, text(&ask["consumer"]))?
        }
        "poll" => return Ok(json!({"records": encoded(client.poll()?)})),
        "commit" => client.commit(number(&ask["offset"]))?,
        _ => return Err(Problem::Unsupported),
    }
    Ok(json!({}))
}

fn connected(ask: &Value) -> Outcome<Client> {
    let options = ask.as_object().expect("an object");
    let known = |name: &str| name == "id" || name == "op" || OPTIONS.contains(&name);
    if !options.keys().all(|name| known(name)) {
        return Err(Problem::Unsupported);
    }
    Client::connect(ask.clone())
}

fn carried_out(client: &mut Option<Client>, ask: &Value) -> Outcome<Value> {
    match (text(&ask["op"]), client.as_mut()) {
        ("connect", _) => *client = Some(connected(ask)?),
        ("close", _) => {
            if let Some(last) = client.take() {
                last.close()?
            }
        }
        (_, Some(there)) => return performed(there, ask),
        (_, None) => return Err(Problem::Unsupported),
    }
    Ok(json!({}))
}

fn main() {
    let mut client = None;
    for line in stdin().lock().lines() {
        let ask: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let answer = match carried_out(&mut client, &ask) {
            Ok(result) => json!({"id": ask["id"], "ok": result}),
            Err(Problem::Unsupported) => json!({"id": ask["id"], "unsupported": true}),
            Err(Problem::Failed { kind, text }) => {
                json!({"id": ask["id"], "error": {"kind": kind, "text": text}})
            }
        };
        println!("{answer}");
        stdout().flush().expect("somebody who reads");
    }
}
