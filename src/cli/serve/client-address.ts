/**
 * The client's address. Behind trusted proxies it is the last address in X-Forwarded-For that is not a trusted proxy:
 *
 *     connection from 10.0.0.3, X-Forwarded-For: 1.2.3.4, 203.0.113.9, 10.0.0.2; proxies 10.0.0.0/8   →   203.0.113.9
 *
 * A client can forge the entries before its own address only. From a sender that is no trusted proxy, the header is ignored.
 */
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { failure, quote } from '../../core/errors.js'
import type { RequestInfo } from '../../server/index.js'

export type AddressOf = (request: IncomingMessage) => RequestInfo

/** Proxies are addresses, or networks such as 10.0.0.0/8. */
export function clientAddress(proxies: readonly string[]): AddressOf {
  const trusted = new BlockList()
  for (const proxy of proxies) addProxy(trusted, proxy)
  return ({ socket, headers }) => {
    const own = plain(socket.remoteAddress ?? '')
    if (!isTrusted(trusted, own)) return own === '' ? {} : { remoteAddress: own }
    const chain = String(headers['x-forwarded-for'] ?? '')
      .split(',')
      .map((each) => plain(each.trim()))
    let address = own
    for (const hop of chain.reverse()) {
      if (isIP(hop) === 0) break
      address = hop
      if (!isTrusted(trusted, hop)) break
    }
    const scheme = String(headers['x-forwarded-proto'] ?? '')
      .split(',')[0]
      ?.trim()
    return { remoteAddress: address, secure: scheme === 'https' }
  }
}

function addProxy(list: BlockList, proxy: string): void {
  const [address = '', bits] = proxy.split('/')
  const version = isIP(address)
  const most = version === 4 ? 32 : 128
  if (version === 0 || (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= most))) {
    throw failure('OPTION_INVALID', `proxies: ${quote(proxy)} is neither an address nor a network such as 10.0.0.0/8`)
  }
  const family = version === 4 ? 'ipv4' : 'ipv6'
  if (bits === undefined) list.addAddress(address, family)
  else list.addSubnet(address, Number(bits), family)
}

function isTrusted(list: BlockList, address: string): boolean {
  const version = isIP(address)
  return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6')
}

/** An IPv4 address without the ::ffff: that an IPv6 socket adds. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}
