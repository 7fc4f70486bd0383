// Driver of the conformance kit around a client in JavaScript: JSON lines in, JSON lines out.
//
// Fill in the methods of Client; an operation that your client does not have stays as it is.
// Then run:  lance-conformance client --exec "node driver.mjs"
//
// A topic is {id, name}: use either. A record is {type, value}, its value a Buffer. Numbers of 64
// bits (offsets, limits) come and go as BigInt.
import { createInterface } from 'node:readline'

/** The client has no such operation, or no such option. */
class Unsupported extends Error {}

/**
 * The operation failed. The kind is retriable, redirect, auth, fatal, protocol, closed or timeout; the
 * documentation of the kit says which error code is which kind.
 */
class Failed extends Error {
  constructor (kind, text) {
    super(text)
    this.kind = kind
  }
}

/** Those that your client knows; add token, tls, ca, keepalive if it has them. */
const OPTIONS = new Set(['host', 'port', 'dialect', 'timeout'])

/** Your client. It may connect now, or with its first request; timeout is in seconds for each operation. */
class Client {
  constructor (settings) {
    this.settings = settings
  }

  /** Send one batch, and return when it is acknowledged. */
  async send (topic, records) { throw new Unsupported() }

  /** Send one batch without waiting; return a number that flush tells about. */
  async sendAsync (topic, records) { throw new Unsupported() }

  /** Return {acked: [number], failed: [[number, Failed]]}: every batch since the last flush. */
  async flush () { throw new Unsupported() }

  /** Create a topic, with limits if they are not undefined, and return it. */
  async createTopic (name, maxAgeSecs, maxBytes) { throw new Unsupported() }

  /** Return all topics. */
  async listTopics () { throw new Unsupported() }

  /** Return one topic. */
  async getTopic (topicId) { throw new Unsupported() }

  async deleteTopic (topicId) { throw new Unsupported() }

  async setRetention (topicId, maxAgeSecs, maxBytes) { throw new Unsupported() }

  /** Read once; return {records, nextOffset}. */
  async fetch (topic, offset, maxBytes) { throw new Unsupported() }

  /** Begin to read. */
  async subscribe (topic, offset, maxBytes, consumer) { throw new Unsupported() }

  /** Return the next records of the subscription; none when none come in time. */
  async poll () { throw new Unsupported() }

  /** Commit an offset of the subscription at the server. */
  async commit (offset) { throw new Unsupported() }

  /** End the client; the next operation is another connect. */
  async close () {}
}

// -- the protocol of the kit, which needs no change ----------------------------------------------

const WIDE = new Set(['offset', 'next_offset', 'max_age_secs', 'max_bytes'])

/** JSON.parse rounds beyond 2 to the power of 53, so the numbers of WIDE are read from the text. */
function parsed (line) {
  const marked = line.replace(/"(offset|next_offset|max_age_secs|max_bytes)":\s*(\d+)/g, '"$1": "$2"')
  return JSON.parse(marked, (key, value) => WIDE.has(key) && typeof value === 'string' ? BigInt(value) : value)
}

function written (answer) {
  const text = JSON.stringify(answer, (_, value) => typeof value === 'bigint' ? `\u0000${value}` : value)
  return text.replace(/"\\u0000(-?\d+)"/g, '$1')
}

const decoded = records => records.map(r => ({ type: r.type, value: Buffer.from(r.value, 'base64') }))
const encoded = records => records.map(r => ({ type: r.type, value: Buffer.from(r.value).toString('base64') }))
const shown = ({ id, name }) => ({ id, name })

const OPERATIONS = {
  async send (client, ask) {
    await client.send(ask.topic, decoded(ask.records))
  },
  async send_async (client, ask) {
    return { ticket: await client.sendAsync(ask.topic, decoded(ask.records)) }
  },
  async flush (client) {
    const { acked, failed } = await client.flush()
    return { acked, failed: failed.map(([ticket, why]) => ({ ticket, kind: why.kind, text: why.message })) }
  },
  async create_topic (client, ask) {
    return shown(await client.createTopic(ask.name, ask.max_age_secs, ask.max_bytes))
  },
  async list_topics (client) {
    return { topics: (await client.listTopics()).map(shown) }
  },
  async get_topic (client, ask) {
    return shown(await client.getTopic(ask.topic_id))
  },
  async delete_topic (client, ask) {
    await client.deleteTopic(ask.topic_id)
  },
  async set_retention (client, ask) {
    await client.setRetention(ask.topic_id, ask.max_age_secs, ask.max_bytes)
  },
  async fetch (client, ask) {
    const { records, nextOffset } = await client.fetch(ask.topic, ask.offset, Number(ask.max_bytes))
    return { records: encoded(records), next_offset: nextOffset }
  },
  async subscribe (client, ask) {
    await client.subscribe(ask.topic, ask.offset, Number(ask.max_bytes), ask.consumer)
  },
  async poll (client) {
    return { records: encoded(await client.poll()) }
  },
  async commit (client, ask) {
    await client.commit(ask.offset)
  }
}

let client = null

async function carriedOut (op, ask) {
  if (op === 'connect') {
    if (!Object.keys(ask).every(name => OPTIONS.has(name))) throw new Unsupported()
    client = new Client(ask)
  } else if (op === 'close') {
    const last = client
    client = null
    await last?.close()
  } else if (client !== null && Object.hasOwn(OPERATIONS, op)) {
    return await OPERATIONS[op](client, ask) ?? {}
  } else {
    throw new Unsupported()
  }
  return {}
}

async function answered ({ id, op, ...ask }) {
  try {
    return { id, ok: await carriedOut(op, ask) }
  } catch (error) {
    if (error instanceof Unsupported) return { id, unsupported: true }
    if (error instanceof Failed) return { id, error: { kind: error.kind, text: error.message } }
    throw error
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(written(await answered(parsed(line))) + '\n')
}
