import type { OwnServer, RunningServer } from './postgres.js'

export interface OwnRedisOptions {
  readonly port?: number
  readonly password?: string
  readonly env?: Readonly<Record<string, string>>
}

export function startRedis(): Promise<RunningServer>
export function startOwnRedis(settings?: readonly string[], where?: OwnRedisOptions): Promise<OwnServer>
export function startRedisCluster(
  replicaEnv?: Readonly<Record<string, string>>,
): Promise<RunningServer & { readonly nodes: readonly OwnServer[] }>
export function startOwnSentinel(name: string, masterUrl: string): Promise<OwnServer>
export function tellRedis(url: string, command: string, ...args: readonly string[]): Promise<unknown>
export function untilClusterReady(nodes: readonly { readonly url: string }[]): Promise<void>
