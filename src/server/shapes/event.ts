/** The events of the stream: the name after `event:`, and the JSON after `data:`. */
import { z } from 'zod'
import { runSummary } from './run.js'

const instanceJoined = z.strictObject({ event: z.literal('instance:joined'), instance: z.string() })
const instanceLost = z.strictObject({ event: z.literal('instance:lost'), instance: z.string() })
const lockLost = z.strictObject({ event: z.literal('lock:lost'), name: z.string(), token: z.int() })
const runsTakenOver = z.strictObject({ event: z.literal('runs:taken-over'), rescued: z.int(), lost: z.int() })
const storeUnreachable = z.strictObject({ event: z.literal('store:unreachable'), error: z.string() })
const storeRecovered = z.strictObject({ event: z.literal('store:recovered'), downMs: z.number() })
const sinkUnreachable = z.strictObject({ event: z.literal('sink:unreachable'), sink: z.string(), error: z.string() })
const sinkRecovered = z.strictObject({ event: z.literal('sink:recovered'), sink: z.string(), downMs: z.number() })

/** What happened in the process that sends the stream. */
export const processEvent = z
  .discriminatedUnion('event', [
    instanceJoined.meta({ id: 'InstanceJoined' }),
    instanceLost.meta({ id: 'InstanceLost' }),
    lockLost.meta({ id: 'LockLost' }),
    runsTakenOver.meta({ id: 'RunsTakenOver' }),
    storeUnreachable.meta({ id: 'StoreUnreachable' }),
    storeRecovered.meta({ id: 'StoreRecovered' }),
    sinkUnreachable.meta({ id: 'SinkUnreachable' }),
    sinkRecovered.meta({ id: 'SinkRecovered' }),
  ])
  .meta({ id: 'ProcessEvent' })

const ready = z.strictObject({ instance: z.string() }).meta({ id: 'StreamReady' })
const gone = z.strictObject({ id: z.string() }).meta({ id: 'RunGone' })
const reset = z
  .strictObject({ reason: z.enum(['gap', 'slow']).meta({ id: 'ResetReason' }) })
  .meta({ id: 'StreamReset' })

/** One event of the stream, with its fields as members. */
export const streamEvent = z
  .discriminatedUnion('event', [
    z.strictObject({ event: z.literal('ready'), id: z.string(), data: ready }).meta({ id: 'ReadyEvent' }),
    z.strictObject({ event: z.literal('run'), id: z.string(), data: runSummary }).meta({ id: 'RunEvent' }),
    z.strictObject({ event: z.literal('gone'), id: z.string(), data: gone }).meta({ id: 'GoneEvent' }),
    z.strictObject({ event: z.literal('instance'), data: processEvent }).meta({ id: 'InstanceEvent' }),
    z
      .strictObject({ event: z.literal('reset'), id: z.string().exactOptional(), data: reset })
      .meta({ id: 'ResetEvent' }),
  ])
  .meta({ id: 'StreamEvent' })

export type ProcessEvent = z.output<typeof processEvent>
