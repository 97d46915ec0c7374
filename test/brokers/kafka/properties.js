// @ts-check
/** The settings of one broker, which is also a controller. */

export const USER = 'belfry'
export const PASSWORD = 'not-a-secret'

/**
 * @typedef {{ id: number, plain: number, secure: number, mutual: number, controller: number }} Ports
 *
 * @param {Ports} own
 * @param {readonly Ports[]} all
 * @param {string} folder
 * @param {import('./certificates.js').KeyPair & { ca: string }} tls
 */
export function properties(own, all, folder, { ca, key, cert }) {
  const at = (/** @type {string} */ name, /** @type {number} */ port) => `${name}://127.0.0.1:${port}`
  const listeners = [at('PLAIN', own.plain), at('SECURE', own.secure), at('MUTUAL', own.mutual)]
  const login = (/** @type {string} */ kind, /** @type {string} */ more) =>
    `org.apache.kafka.common.security.${kind} required ${more};`
  const scram = login('scram.ScramLoginModule', '')
  /** @type {Record<string, string | number>} */
  const settings = {
    'process.roles': 'broker,controller',
    'node.id': own.id,
    'controller.quorum.voters': all.map(({ id, controller }) => `${id}@127.0.0.1:${controller}`).join(),
    listeners: [...listeners, at('CONTROLLER', own.controller)].join(),
    'advertised.listeners': listeners.join(),
    'listener.security.protocol.map': 'PLAIN:PLAINTEXT,SECURE:SASL_SSL,MUTUAL:SSL,CONTROLLER:PLAINTEXT',
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAIN',
    'log.dirs': `${folder}/data`,
    'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER',
    'listener.name.secure.scram-sha-256.sasl.jaas.config': scram,
    'listener.name.secure.scram-sha-512.sasl.jaas.config': scram,
    'listener.name.secure.plain.sasl.jaas.config': login('plain.PlainLoginModule', `user_${USER}="${PASSWORD}"`),
    'listener.name.secure.oauthbearer.sasl.jaas.config': login(
      'oauthbearer.OAuthBearerLoginModule',
      'unsecuredLoginStringClaim_sub="broker"',
    ),
    'listener.name.mutual.ssl.client.auth': 'required',
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.key': inOneLine(key),
    'ssl.keystore.certificate.chain': inOneLine(cert),
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.certificates': inOneLine(ca),
    'default.replication.factor': all.length,
    'min.insync.replicas': Math.min(2, all.length),
    'num.partitions': 6,
    'auto.create.topics.enable': 'false',
    'offsets.topic.replication.factor': all.length,
    'log.message.timestamp.type': 'LogAppendTime',
    // Three brokers share a small machine.
    'num.network.threads': 2,
    'num.io.threads': 4,
    'log.cleaner.enable': 'false',
    'controlled.shutdown.enable': 'true',
  }
  return Object.entries(settings)
    .map((pair) => pair.join('='))
    .join('\n')
}

/** @param {string} pem */
function inOneLine(pem) {
  return pem.trim().split('\n').join('\\n')
}
