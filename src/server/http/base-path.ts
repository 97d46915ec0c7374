/** The path below which the routes are: the option `basePath`, or where a router has mounted the server. */
import { getPath } from 'hono/utils/url'
import { type Problem, problem } from './problem.js'

/** No URL has this path, because it holds a space. */
const OUTSIDE = '/ outside'

/** The part of a request's path that names a route. */
export function pathBelow(basePath: string, request: Request): string {
  const path = getPath(request)
  if (basePath === '') return path
  if (path === basePath) return '/'
  return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : OUTSIDE
}

const ROUTE = /^(.*?)\/(?:v1|openapi\.json|healthz|readyz|metrics)(?:\/|:|$)/

export function nothingAt(path: string, basePath: string): Problem {
  return problem(404, 'NOT_FOUND', `there is nothing at ${path.slice(0, 200)}`, { hint: hintFor(path, basePath) })
}

function hintFor(path: string, basePath: string): string {
  const [, before] = ROUTE.exec(path) ?? []
  if (before === undefined || before === basePath) {
    return `the routes are below ${basePath}/v1, and ${basePath}/openapi.json describes them`
  }
  const found = before === '' ? '/' : before.slice(0, 200)
  if (basePath === '')
    return `the routes are below /v1, not below ${found}/v1: if the server is mounted there, set basePath to "${found}"`
  return `the routes are below ${basePath}/v1 (basePath), and the path begins with ${found}: mount the server with toNodeHandler(), or set basePath to what its requests begin with`
}
