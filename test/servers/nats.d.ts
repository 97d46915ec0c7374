import type { OwnServer, RunningServer } from './postgres.js'

export function startNats(): Promise<RunningServer | OwnServer>
export function startOwnNats(settings?: {
  readonly jetstream?: boolean
  readonly maxPayload?: number
  readonly password?: string
}): Promise<OwnServer>
