/**
 * Protects against SSRF: URLs of webhooks come from users, and a service inside a network must not give them access to
 * it.
 *
 * The guard checks the address of the connection, not the name or its spelling. A URL's host is first normalised
 * (`http://2130706433`, `http://0177.1` and `http://[::ffff:7f00:1]` are all 127.0.0.1). The guard resolves names
 * itself, as part of connecting, so the checked address is the one that is used. If a name changes its address (DNS
 * rebinding), the next connection checks the new address.
 */
import { lookup as systemLookup } from 'node:dns/promises'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { failure, quote } from '../../core/errors.js'

export type Resolve = (host: string) => Promise<readonly string[]>

/**
 * Networks that are not public: this host, private networks, link-local, carrier NAT, documentation, benchmarks,
 * multicast, reserved.
 */
const RESERVED_IPV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4'],
  // Azure serves metadata and control at this address, which looks public.
  '168.63.129.16/32',
]
/** All public IPv6 addresses are in this network; the reserved ones below are exceptions. */
const PUBLIC_IPV6 = '2000::/3'
const RESERVED_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']
/** IPv6 addresses that contain an IPv4 address (mapped, or behind NAT64). The IPv4 address is checked. */
const CARRIES_IPV4 = /^(?:::ffff:|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/

const reserved = listOf([...RESERVED_IPV4, ...RESERVED_IPV6])
const publicIpv6 = listOf([PUBLIC_IPV6])

export class AddressGuard {
  readonly #allowed: BlockList
  readonly #resolve: Resolve

  /** `allow` lists private addresses and networks that may be called, such as `10.0.0.0/8`. */
  constructor(allow: readonly string[], resolve: Resolve = resolveBySystem) {
    this.#allowed = listOf(allow)
    this.#resolve = resolve
  }

  /** Refuses a host that is a forbidden address. Names are checked when they are resolved. */
  checkHost(hostname: string): void {
    const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
    if (isIP(host) !== 0 && !this.allows(host)) throw refusal(host)
  }

  allows(address: string): boolean {
    const known = canonical(address)
    if (known === undefined) return false
    const { text, family } = known
    if (this.#allowed.check(text, family)) return true
    return !reserved.check(text, family) && (family === 'ipv4' || publicIpv6.check(text, family))
  }

  /** The `lookup` of sockets: resolves a name, and fails if any of its addresses is forbidden. */
  readonly lookup: LookupFunction = (host, options, callback) => {
    this.#lookUp(host).then(
      (found) => {
        if (options.all === true) callback(null, found)
        else callback(null, found[0]?.address ?? '', found[0]?.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    )
  }

  async #lookUp(host: string): Promise<{ address: string; family: number }[]> {
    const addresses = await this.#resolve(host)
    const refused = addresses.find((address) => !this.allows(address))
    if (refused !== undefined) throw refusal(host)
    if (addresses.length === 0) throw Object.assign(new Error(`no address of ${host}`), { code: 'ENOTFOUND' })
    return addresses.map((address) => ({ address, family: isIP(address) }))
  }
}

/** The error names the host of the URL, and does not reveal the address that it resolves to inside the network. */
function refusal(host: string) {
  return failure(
    'ADDRESS_REFUSED',
    `${host} is a private, local or reserved address: the sink calls only those in its option "allow"`,
  )
}

/** The normalised address; undefined for text that is not an address. */
function canonical(address: string): { readonly text: string; readonly family: 'ipv4' | 'ipv6' } | undefined {
  if (isIP(address) === 4) return { text: address, family: 'ipv4' }
  const [bare = ''] = address.split('%')
  if (isIP(bare) !== 6) return undefined
  const text = new URL(`http://[${bare}]`).hostname.slice(1, -1)
  const [, high, low] = CARRIES_IPV4.exec(text) ?? []
  if (high === undefined || low === undefined) return { text, family: 'ipv6' }
  const [one, two] = [Number.parseInt(high, 16), Number.parseInt(low, 16)]
  return { text: [one >> 8, one & 255, two >> 8, two & 255].join('.'), family: 'ipv4' }
}

async function resolveBySystem(host: string): Promise<readonly string[]> {
  return (await systemLookup(host, { all: true })).map(({ address }) => address)
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6'
    const most = family === 'ipv4' ? 32 : 128
    const prefix = bits === undefined ? most : Number(bits)
    if (isIP(address) === 0 || !/^\d{0,3}$/.test(bits ?? '') || bits === '' || prefix > most) {
      throw failure('OPTION_INVALID', `allow: ${quote(network)} is neither an address nor a network such as 10.0.0.0/8`)
    }
    list.addSubnet(address, prefix, family)
  }
  return list
}
