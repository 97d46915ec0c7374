/**
 * Host check against DNS rebinding. Without authentication every program that reaches the port is admin, and that includes
 * web pages in a browser on this machine: `evil.example` can change its DNS record to 127.0.0.1, and its page then talks to
 * this service as its own site. Its requests still carry `Host: evil.example`, so they are refused.
 */
import { quote } from '../../core/errors.js'
import { problem } from '../http/problem.js'

const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?)\.?(?::(\d{1,5}))?$/i

interface HostName {
  readonly name: string
  readonly port: string | undefined
}

function parseHost(text: string): HostName | undefined {
  const [, name, port] = HOST.exec(text) ?? []
  return name === undefined ? undefined : { name: name.toLowerCase(), port }
}

/** Whether the host names this machine: `localhost` and its subdomains, 127.0.0.0/8 and ::1. Ignores the port. */
export function isLoopback(host: string): boolean {
  return isLoopbackName(parseHost(host)?.name ?? host.toLowerCase())
}

function isLoopbackName(name: string): boolean {
  return (
    name === '127.0.0.1' ||
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === '::1' ||
    name === '[::1]' ||
    /^(::ffff:)?127(\.\d{1,3}){3}$/.test(name)
  )
}

/** An entry of `hosts` without a port allows every port. */
export function checkHost(request: Request, hosts: readonly string[]): void {
  const header = request.headers.get('host')
  const requested = hostOf(request.url)
  checkAllowed(requested, hosts)
  // A request line with an absolute URL may name another host than the header.
  if (header !== null && header !== requested) checkAllowed(header, hosts)
}

/** The authority of an absolute URL. Unlike `URL.host` it keeps "user@", so that such a host is refused. */
function hostOf(url: string): string {
  const start = url.indexOf('//') + 2
  const end = url.indexOf('/', start)
  return url.slice(start, end === -1 ? url.length : end)
}

function checkAllowed(host: string, hosts: readonly string[]): void {
  if (isAllowed(host, hosts)) return
  throw problem(421, 'HOST_REFUSED', `the host ${quote(host)} is not allowed`, {
    hint: 'use localhost, or add the host to the setting "hosts"',
  })
}

function isAllowed(host: string, hosts: readonly string[]): boolean {
  const requested = parseHost(host)
  if (requested === undefined) return false
  return (
    isLoopbackName(requested.name) ||
    hosts.some((each) => {
      const allowed = parseHost(each)
      return allowed?.name === requested.name && (allowed.port === undefined || allowed.port === requested.port)
    })
  )
}
