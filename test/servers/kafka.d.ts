import type { OwnServer, RunningServer } from './postgres.js'

export interface KafkaRecord {
  readonly partition: number
  readonly key: string | null
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

export function startKafka(): Promise<RunningServer | OwnServer>
export function startOwnKafka(): Promise<OwnServer>
export function consumeKafka(brokers: string, topic: string): Promise<KafkaRecord[]>

export function rawKafka(brokers: string, topic: string): Promise<Buffer>
