import type { Json } from '../../core/checks/json.js'
import type { StoredRecord } from '../../core/records/record.js'

export type OperationKind = 'backfill' | 'cancel-runs' | 'retry-runs' | 'pause-schedules' | 'resume-schedules'
export type OperationState = 'running' | 'succeeded' | 'failed' | 'cancelled' | 'interrupted'

export interface StoredOperation {
  readonly id: string
  readonly kind: OperationKind
  readonly state: OperationState
  readonly target: string
  readonly counts: Readonly<Record<string, number>>
  readonly error?: { readonly code: string; readonly message: string }
  /** The prefix of the caller that started it: others do not see it. */
  readonly prefix?: string
  readonly startedAt: number
  readonly updatedAt: number
}

/** A running operation writes its progress every second. If it has not for this long, its process has ended. */
const SILENT_MS = 30_000

export function toBody({ id: _, updatedAt: __, ...rest }: StoredOperation): Json {
  return { ...rest } as unknown as Json
}

/** Only this module writes such records, so their bodies have this form. */
export function fromRecord({ id, body, writtenAt }: StoredRecord, now: number): StoredOperation {
  const stored = { ...(body as unknown as Omit<StoredOperation, 'id' | 'updatedAt'>), id, updatedAt: writtenAt }
  return stored.state === 'running' && now - writtenAt > SILENT_MS ? { ...stored, state: 'interrupted' } : stored
}
