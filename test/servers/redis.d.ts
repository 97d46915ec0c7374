import type { RunningServer } from './postgres.js'

export function startRedis(): Promise<RunningServer>
export function startOwnRedis(settings?: readonly string[]): Promise<RunningServer>
