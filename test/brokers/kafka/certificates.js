// @ts-check
/** A test certificate authority, which signs a certificate for the brokers and one for a client. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { foundOrInstalled } from '../../servers/apt-install.js'
import { findProgram } from '../../servers/find-program.js'

/**
 * @param {string} folder
 * @returns {{ ca: string, broker: KeyPair, client: KeyPair }}
 *
 * @typedef {{ key: string, cert: string }} KeyPair in PEM
 */
export function makeCertificates(folder) {
  const openssl = foundOrInstalled({
    what: 'the Kafka tests make certificates by openssl',
    package_: 'openssl',
    find: () => findProgram('openssl'),
  })
  const run = (/** @type {string[]} */ ...args) => execFileSync(openssl, args, { cwd: folder, stdio: 'pipe' })
  const read = (/** @type {string} */ file) => readFileSync(join(folder, file), 'utf8')
  const newKey = ['-newkey', 'rsa:2048', '-nodes']
  run('req', '-x509', ...newKey, '-keyout', 'ca.key', '-out', 'ca.crt', '-days', '2', '-subj', '/CN=belfry tests')
  writeFileSync(join(folder, 'names'), 'subjectAltName=IP:127.0.0.1,DNS:localhost')
  const pair = (/** @type {string} */ name) => {
    run('req', ...newKey, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`)
    const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names', '-days', '2']
    run('x509', '-req', '-in', `${name}.csr`, '-out', `${name}.crt`, ...signed)
    return { key: read(`${name}.key`), cert: read(`${name}.crt`) }
  }
  return { ca: read('ca.crt'), broker: pair('broker'), client: pair('client') }
}
