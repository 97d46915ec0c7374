// @ts-check
/**
 * Installs the dependencies of the Kafka tests: Java, Kafka's jars from Maven Central, the clients, and a newer Node.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { foundOrInstalled } from '../../servers/apt-install.js'
import { findProgram } from '../../servers/find-program.js'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const BROKERS = fileURLToPath(new URL('..', import.meta.url))
const VERSION = '4.3.1'
/** Downloads and builds that take long are cached here. */
const CACHE = join(homedir(), '.cache', 'belfry-tests')
const LIBRARIES = join(CACHE, `kafka-${VERSION}`)

export function java() {
  return foundOrInstalled({
    what: 'the Kafka tests need Java 17 or newer',
    package_: 'default-jre-headless',
    find: () => findProgram('java'),
  })
}

/** The class path of a Kafka broker, downloaded once and cached. */
export function classPath() {
  const isComplete =
    existsSync(LIBRARIES) && readdirSync(LIBRARIES).some((file) => file === `kafka_2.13-${VERSION}.jar`)
  if (!isComplete) {
    java()
    const maven = foundOrInstalled({
      what: "the Kafka tests need Maven, to download Kafka's jars",
      package_: 'maven',
      find: () => findProgram('mvn'),
    })
    mkdirSync(LIBRARIES, { recursive: true })
    const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${LIBRARIES}`, '-DincludeScope=runtime']
    execFileSync(maven, ['-q', '-B', ...goal], { cwd: HERE, stdio: ['ignore', 2, 2], timeout: 600_000 })
  }
  return join(LIBRARIES, '*')
}

/** Has the Kafka clients that the project's root package does not install. */
export const CLIENT_FOLDER = join(BROKERS, 'node_modules')

/** @param {readonly string[]} clients */
export function installClients(clients) {
  if (clients.every((client) => client === 'kafkajs')) return
  if (!existsSync(join(CLIENT_FOLDER, '@platformatic/kafka'))) npmInstall(BROKERS)
  if (clients.includes('platformatic')) newerNode()
  if (clients.includes('confluent')) buildConfluent()
}

/** A Node version that @platformatic/kafka supports: this one, or one from npm. */
export function newerNode() {
  const [major = 0] = process.versions.node.split('.').map(Number)
  if (major >= 24) return process.execPath
  const folder = join(BROKERS, 'node24')
  const file = join(folder, 'node_modules', `node-linux-${process.arch}`, 'bin', 'node')
  if (!existsSync(file)) npmInstall(folder)
  if (!existsSync(file)) throw new Error(`@platformatic/kafka needs Node 24; npm has none for ${process.arch} here`)
  return file
}

/** Ignores install scripts: `buildConfluent` does what they would do. @param {string} folder */
function npmInstall(folder) {
  const options = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  execFileSync('npm', options, { cwd: folder, stdio: ['ignore', 2, 2], timeout: 300_000 })
}

/**
 * Downloads the binary of Confluent's client from GitHub. Where GitHub is unreachable, builds it against the system's
 * libraries and caches it.
 */
function buildConfluent() {
  const folder = join(CLIENT_FOLDER, '@confluentinc', 'kafka-javascript')
  const binary = join('build', 'Release', 'confluent-kafka-javascript.node')
  if (existsSync(join(folder, binary))) return
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const kept = join(CACHE, `confluent-${version}-${process.versions.modules}-${process.arch}`)
  if (existsSync(join(kept, binary))) {
    cpSync(kept, folder, { recursive: true })
    return
  }
  try {
    preGyp(folder, '--update-binary')
  } catch {
    for (const [package_, file] of BUILD_NEEDS) {
      foundOrInstalled({ what: `building Confluent's client needs ${package_}`, package_, find: () => found(file) })
    }
    console.error("builds Confluent's client, which takes minutes")
    preGyp(folder, '--build-from-source')
    for (const part of [binary, join('build', 'deps')]) {
      cpSync(join(folder, part), join(kept, part), {
        ...{ recursive: true, dereference: true },
        filter: (file) => !file.endsWith('.a'),
      })
    }
  }
}

/** @param {string} folder @param {string} how */
function preGyp(folder, how) {
  const file = createRequire(join(folder, 'package.json')).resolve('@mapbox/node-pre-gyp/bin/node-pre-gyp')
  const global_ = execFileSync('npm', ['root', '-g'], { encoding: 'utf8' }).trim()
  const gyp = join(global_, 'npm', 'node_modules', 'node-gyp', 'bin', 'node-gyp.js')
  // Most installations of Node include its headers. Without them, node-gyp downloads them.
  const home = dirname(dirname(process.execPath))
  const headers = existsSync(join(home, 'include', 'node', 'node.h')) ? { npm_config_nodedir: home } : {}
  const env = { ...process.env, ...headers, CKJS_LINKING: 'dynamic', npm_config_node_gyp: gyp }
  execFileSync(process.execPath, [file, 'install', how], { cwd: folder, env, stdio: 'pipe', timeout: 1_200_000 })
}

/** @type {readonly (readonly [string, string])[]} */
const BUILD_NEEDS = [
  ['build-essential', '/usr/bin/g++'],
  ['libssl-dev', '/usr/include/openssl/ssl.h'],
  ['zlib1g-dev', '/usr/include/zlib.h'],
]

function found(/** @type {string} */ file) {
  return existsSync(file) ? file : undefined
}
