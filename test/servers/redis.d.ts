import type { OwnServer, RunningServer } from './postgres.js'

export function startRedis(): Promise<RunningServer>
export function startOwnRedis(settings?: readonly string[], port?: number): Promise<OwnServer>
export function startRedisCluster(): Promise<RunningServer & { readonly nodes: readonly OwnServer[] }>
