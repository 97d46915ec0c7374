/** Chooses the Kafka client: the named one, or the first that is installed and runs on this Node version. */

import { installedPackage } from '../../core/connection/installed-package.js'
import { failure, quote } from '../../core/errors.js'
import type { ClientSettings, Connect } from './client.js'
import { connectConfluent } from './clients/confluent.js'
import { checkKafkaJsCompression, connectKafkaJs } from './clients/kafkajs.js'
import { connectPlatformatic } from './clients/platformatic.js'

/** In order of preference. */
export const CLIENTS = ['@platformatic/kafka', '@confluentinc/kafka-javascript', 'kafkajs'] as const
export type ClientName = (typeof CLIENTS)[number]

export interface ClientKind {
  readonly connect: Connect
  /** Whether a hanging broker keeps the client from trying the next one. */
  readonly needsStagger: boolean
}

const KINDS: Readonly<Record<ClientName, ClientKind>> = {
  '@platformatic/kafka': { connect: connectPlatformatic, needsStagger: true },
  '@confluentinc/kafka-javascript': { connect: connectConfluent, needsStagger: false },
  kafkajs: { connect: connectKafkaJs, needsStagger: true },
}

export function chooseClient(wanted: unknown, settings: ClientSettings, where: string): ClientKind {
  const name = wanted === undefined ? firstInstalled(where) : nameOf(wanted, where)
  if (name === 'kafkajs') checkKafkaJsCompression(settings, where)
  return KINDS[name]
}

function nameOf(wanted: unknown, where: string): ClientName {
  const name = CLIENTS.find((each) => each === wanted)
  if (name === undefined) {
    const hint = `name one of ${CLIENTS.map((each) => `"${each}"`).join(', ')}; ssl and sasl are options of their own, and other settings of the client go into clientOptions`
    throw failure('OPTION_INVALID', `${where}: client is ${quote(wanted)}; ${hint}`)
  }
  if (name === '@platformatic/kafka' && !runsPlatformatic()) {
    const version = process.versions.node
    throw failure('UNSUPPORTED', `${where}: ${name} needs Node 22.22, or 24.6; this is ${version}. Use kafkajs`)
  }
  if (installedPackage(name) === undefined) {
    throw failure('UNSUPPORTED', `${where} needs the package ${name}: npm install ${name}`)
  }
  return name
}

function firstInstalled(where: string): ClientName {
  for (const name of CLIENTS) {
    if (name === '@platformatic/kafka' && !runsPlatformatic()) continue
    if (installedPackage(name) !== undefined) return name
  }
  const advice = runsPlatformatic() ? '@platformatic/kafka' : 'kafkajs'
  throw failure('UNSUPPORTED', `${where} needs a Kafka client: npm install ${advice}`)
}

/** Whether `@platformatic/kafka` runs on this Node version: 22.22 and newer, 24.6 and newer. */
export function runsPlatformatic(version = process.versions.node): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major === 22) return minor >= 22
  if (major === 24) return minor >= 6
  return major > 24
}
