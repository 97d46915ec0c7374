/** Long work that a request starts and later requests ask about. */
import { z } from 'zod'
import type { StoredOperation } from '../operations/stored-operation.js'
import { iso, note, text, time } from './fields.js'
import { cancellableStates, checkChosen, choosing, retryableStates } from './requests.js'

export const OPERATION_KINDS = ['backfill', 'cancel-runs', 'retry-runs', 'pause-schedules', 'resume-schedules'] as const

const runsOf = <Kind extends string>(kind: Kind, states: Parameters<typeof choosing>[0]) =>
  z.strictObject({ kind: z.literal(kind), ...choosing(states) }).superRefine(checkChosen)

const schedulesOf = <Kind extends string>(kind: Kind) =>
  z.strictObject({
    kind: z.literal(kind),
    prefix: text.meta({ description: 'All schedules whose id begins with this; "" means all.' }),
    note: note.exactOptional(),
  })

export const newOperation = z
  .discriminatedUnion('kind', [
    runsOf('cancel-runs', cancellableStates).meta({ id: 'CancelRunsOperation' }),
    runsOf('retry-runs', retryableStates).meta({ id: 'RetryRunsOperation' }),
    schedulesOf('pause-schedules').meta({ id: 'PauseSchedulesOperation' }),
    schedulesOf('resume-schedules').meta({ id: 'ResumeSchedulesOperation' }),
  ])
  .meta({
    id: 'StartOperationRequest',
    bodies: [
      { kind: 'cancel-runs', job: 'send-digest' },
      { kind: 'pause-schedules', prefix: 'user/', note: 'moving' },
    ],
  })

export const operationResource = z
  .strictObject({
    id: z.string(),
    kind: z.enum(OPERATION_KINDS).meta({ id: 'OperationKind' }),
    state: z.enum(['running', 'succeeded', 'failed', 'cancelled', 'interrupted']).meta({
      id: 'OperationState',
      description: '`interrupted`: its process ended. Start it again: what is done already is not done twice.',
    }),
    target: z.string().meta({ description: 'The schedule, or the prefix of schedules; "*" for runs.' }),
    counts: z.record(z.string(), z.int()).meta({ description: 'How many items it has dealt with, by outcome.' }),
    error: z.strictObject({ code: z.string(), message: z.string() }).meta({ id: 'OperationError' }).exactOptional(),
    startedAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Operation' })

export type NewOperation = z.input<typeof newOperation>
export type OperationResource = z.output<typeof operationResource>

export function toOperationResource({ prefix: _, startedAt, updatedAt, ...rest }: StoredOperation): OperationResource {
  return { ...rest, startedAt: iso(startedAt), updatedAt: iso(updatedAt) }
}
