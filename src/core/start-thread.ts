import { Worker, type WorkerOptions } from 'node:worker_threads'

/**
 * Starts a worker thread on a module. Threads inherit the options of the process, and one that was started with
 * `--input-type` allows no file as what a thread begins with: so each begins with a text that imports the module.
 */
export function startThread(module: URL, options: Omit<WorkerOptions, 'eval'>): Worker {
  return new Worker(`import(${JSON.stringify(module.href)})`, { ...options, eval: true })
}
