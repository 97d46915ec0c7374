import { describe, expect, it } from 'vitest'
import { connectOwnProducer } from './clients/own-producer.js'
import { runsPlatformatic } from './clients.js'
import { errorKind, kafkaCode } from './kafka-errors.js'
import { clientSettings } from './settings.js'

const PEM = '-----BEGIN CERTIFICATE-----\nMII…\n-----END CERTIFICATE-----'

describe('a client of Kafka', () => {
  it('is @platformatic/kafka only where the runtime supports it', () => {
    const versions = ['20.20.2', '22.21.1', '22.22.0', '23.11.0', '24.5.0', '24.6.0', '26.0.0']
    expect(versions.filter(runsPlatformatic)).toEqual(['22.22.0', '24.6.0', '26.0.0'])
  })

  it('gets settings with the same meaning for all of them', () => {
    expect(clientSettings({}, 'kafka()')).toEqual({
      ...{ clientId: 'belfry', compression: 'none', acks: -1, tls: undefined, sasl: undefined },
      ...{ requestTimeoutMs: 10_000, replicaTimeoutMs: 9_000, connectionTimeoutMs: 3_000, more: {} },
    })
    const sasl = { mechanism: 'plain', username: 'belfry', password: 'hunter2' } as const
    const ssl = { ca: [PEM, PEM], cert: PEM, key: PEM }
    const given = { ssl, sasl, acks: 'leader', requestTimeout: '5s', compression: 'gzip' } as const
    expect(clientSettings(given, 'kafka()')).toMatchObject({
      ...{ acks: 1, requestTimeoutMs: 5_000, compression: 'gzip', sasl },
      tls: { ca: `${PEM}\n${PEM}`, cert: PEM, key: PEM },
    })
  })

  it('may get its token from a function', async () => {
    let asked = 0
    const token = () => {
      asked += 1
      return `token ${asked}`
    }
    const { sasl } = clientSettings({ sasl: { mechanism: 'oauthbearer', token } }, 'kafka()')
    if (sasl?.mechanism !== 'oauthbearer') throw new Error('it has no token')
    expect([await sasl.token(), await sasl.token()]).toEqual(['token 1', 'token 2'])
  })

  it('may be the caller’s producer of @platformatic/kafka, which gets bytes and names what was written', async () => {
    const sent: unknown[] = []
    const client = await connectOwnProducer({
      metadata: async () => ({ topics: new Map([['events', { partitionsCount: 12 }]]) }),
      send: async (record: unknown) => {
        sent.push(record)
        return { offsets: [{ topic: 'events', partition: 7 }] }
      },
      close: async () => {},
    })
    expect(await client.partitions('events')).toBe(12)
    const message = { key: 'größe', value: '{}', headers: { team: 'shop' } }
    expect(await client.send('events', 7, [message])).toEqual([{ topic: 'events', partition: 7 }])
    const headers = new Map([[Buffer.from('team'), Buffer.from('shop')]])
    const bytes = { key: Buffer.from('größe'), value: Buffer.from('{}'), headers }
    expect(sent).toEqual([{ acks: -1, messages: [{ topic: 'events', partition: 7, ...bytes }] }])
  })
})

describe('an error of a client', () => {
  it.each([
    [
      'of kafkajs',
      { name: 'KafkaJSNumberOfRetriesExceeded', cause: { name: 'KafkaJSProtocolError', code: 10 } },
      'message',
    ],
    ['of kafkajs', { name: 'KafkaJSConnectionError', code: 'ECONNREFUSED' }, 'unanswered'],
    ['of kafkajs', { name: 'KafkaJSSASLAuthenticationError' }, 'credentials'],
    [
      'of @platformatic/kafka',
      { code: 'PLT_KFK_MULTIPLE', errors: [{ code: 'PLT_KFK_RESPONSE', errors: [{ apiCode: 6 }] }] },
      'broker',
    ],
    ['of @platformatic/kafka', { code: 'PLT_KFK_NETWORK', cause: { code: 'ECONNRESET' } }, 'unanswered'],
    ['of @platformatic/kafka', { code: 'PLT_KFK_AUTHENTICATION' }, 'credentials'],
    ['of librdkafka', { code: 29 }, 'topic'],
    ['of librdkafka', { code: -188 }, 'missing'],
    ['of librdkafka', { code: -192 }, 'unanswered'],
    ['of nobody', undefined, 'unanswered'],
  ])('%s is classified (%j)', (_, error, kind) => {
    expect(errorKind(error)).toBe(kind)
  })

  it('is found at any depth, also in a cycle', () => {
    const cycle: { cause?: unknown } = {}
    cycle.cause = cycle
    expect(kafkaCode(cycle)).toBe(0)
    expect(kafkaCode({ cause: { errors: [{}, { originalError: { code: 19 } }] } })).toBe(19)
  })
})
