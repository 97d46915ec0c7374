/**
 * Who was asked for. Without a login everybody who can reach the port is let in, and that includes every web page that a
 * browser on this machine shows: a page of `evil.example` whose name suddenly stands for 127.0.0.1 speaks to us as its own
 * site. Its requests carry its own name in `Host`, and that gives it away.
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

/** `localhost`, 127.0.0.0/8 and ::1, with or without a port. */
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

/** Hosts are names, with a port where only that port is meant. */
export function checkHost(request: Request, hosts: readonly string[]): void {
  const shown = request.headers.get('host')
  const asked = hostOf(request.url)
  checkKnown(asked, hosts)
  // A request line with a whole URL may name another host than the header.
  if (shown !== null && shown !== asked) checkKnown(shown, hosts)
}

/** URLs of requests are well-formed and absolute. What stands before an "@" makes it no host of ours. */
function hostOf(url: string): string {
  const start = url.indexOf('//') + 2
  const end = url.indexOf('/', start)
  return url.slice(start, end === -1 ? url.length : end)
}

function checkKnown(host: string, hosts: readonly string[]): void {
  if (isKnownHost(host, hosts)) return
  throw problem(421, 'HOST_REFUSED', `the host ${quote(host)} is not served here`, {
    hint: 'ask for localhost, or add the host to the setting "hosts"',
  })
}

function isKnownHost(host: string, hosts: readonly string[]): boolean {
  const asked = parseHost(host)
  if (asked === undefined) return false
  return (
    isLoopbackName(asked.name) ||
    hosts.some((each) => {
      const known = parseHost(each)
      return known?.name === asked.name && (known.port === undefined || known.port === asked.port)
    })
  )
}
