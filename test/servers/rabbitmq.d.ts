import type { OwnServer, RunningServer } from './postgres.js'

export const MAX_MESSAGE_BYTES: number
export function startRabbitMq(): Promise<RunningServer | OwnServer>
export function startOwnRabbitMq(): Promise<OwnServer>
