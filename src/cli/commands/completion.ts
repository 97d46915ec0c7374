import { Argument, type Command } from 'commander'

export function completionCommand(command: Command): void {
  command
    .addArgument(new Argument('<shell>', 'your shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      `
Examples:
  belfry completion bash > /etc/bash_completion.d/belfry
  belfry completion zsh > "\${fpath[1]}/_belfry"
  belfry completion fish > ~/.config/fish/completions/belfry.fish`,
    )
    .action(async (shell: 'bash' | 'zsh' | 'fish') => {
      const { completionScript } = await import('../completion/completion-script.js')
      process.stdout.write(await completionScript(shell))
    })
}
