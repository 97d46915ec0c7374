/**
 * Who is at the other end. Behind proxies that we were told of it is the last address before them; what anybody else
 * says about where he comes from counts for nothing.
 */
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, type Socket } from 'node:net'
import { failure, quote } from '../../core/errors.js'
import type { RequestInfo } from '../../server/index.js'

export type AddressOf = (request: IncomingMessage) => RequestInfo

/** Proxies are addresses, or networks such as 10.0.0.0/8. */
export function clientAddress(proxies: readonly string[]): AddressOf {
  const trusted = new BlockList()
  for (const proxy of proxies) addProxy(trusted, proxy)
  if (proxies.length === 0) return ownAddress()
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

/** Without proxies all requests of a connection come from where it comes from. */
function ownAddress(): AddressOf {
  const known = new WeakMap<Socket, RequestInfo>()
  return ({ socket }) => {
    let info = known.get(socket)
    if (info === undefined) {
      const own = plain(socket.remoteAddress ?? '')
      info = own === '' ? {} : { remoteAddress: own }
      known.set(socket, info)
    }
    return info
  }
}

function addProxy(list: BlockList, proxy: string): void {
  const [address = '', bits] = proxy.split('/')
  const version = isIP(address)
  const most = version === 4 ? 32 : 128
  if (version === 0 || (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= most))) {
    throw failure('OPTION_INVALID', `proxies: ${quote(proxy)} is neither an address nor a network like 10.0.0.0/8`)
  }
  const family = version === 4 ? 'ipv4' : 'ipv6'
  if (bits === undefined) list.addAddress(address, family)
  else list.addSubnet(address, Number(bits), family)
}

function isTrusted(list: BlockList, address: string): boolean {
  const version = isIP(address)
  return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6')
}

/** IPv4 as it is written, also where it came through an IPv6 socket. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}
