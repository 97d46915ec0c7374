import type { RunningServer } from './postgres.js'

export function startPgBouncer(postgresUrl: string): Promise<RunningServer>
