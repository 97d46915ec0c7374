import { Worker, type WorkerOptions } from 'node:worker_threads'

/**
 * Starts a worker thread on a module. Threads inherit the options of the process, and `--input-type` forbids a file as the
 * entry of a thread. So the entry is text that imports the module.
 */
export function startThread(module: URL, options: Omit<WorkerOptions, 'eval'>): Worker {
  return new Worker(`import(${JSON.stringify(module.href)})`, { ...options, eval: true })
}
