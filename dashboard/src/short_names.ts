// SPDX-License-Identifier: Apache-2.0
// Targets and fingerprints are long texts of words. These functions shorten them to what names a machine, and to the
// words in which those that stand on one page differ.

type IsName = (word: string, at: number) => boolean;

const longest = 60;

// The words of a list such as -mattr=+a,+b count one by one.
function partsOf(text: string): string[] {
  return text
    .split(' ')
    .filter(Boolean)
    .flatMap((word) => {
      const list = /^[^=]+=(\+.*|.*,.*)$/.exec(word)?.[1];
      return list === undefined ? [word] : list.split(',');
    });
}

function shortened(texts: string[], isName: IsName): Map<string, string> {
  const groups = new Map<string, string[]>();
  for (const text of new Set(texts)) {
    const name = text.split(' ').filter(Boolean).filter(isName).join(' ');
    groups.set(name, [...(groups.get(name) ?? []), text]);
  }
  const result = new Map<string, string>();
  for (const [name, group] of groups) {
    const inAll = (part: string) => group.every((text) => partsOf(text).includes(part));
    for (const text of group) {
      const differs = group.length > 1 ? partsOf(text).filter((part) => !inAll(part)) : [];
      const short = [name, ...differs].join(' ').trim() || text;
      result.set(text, short.length > longest ? `${short.slice(0, longest - 1)}…` : short);
    }
  }
  return result;
}

/** By target: its kind and what names a machine in it, and what differs between targets that have these in common. */
export function shortTargets(targets: string[]): Map<string, string> {
  return shortened(targets, (word) => !word.startsWith('-') || /^-(mcpu|device)=/.test(word));
}

/** By fingerprint of a device: its architecture and model, and what differs. */
export function shortDevices(fingerprints: string[]): Map<string, string> {
  const names = shortened(fingerprints, (_word, at) => at < 2);
  // Underscores stand for spaces, but for those in the name of an architecture.
  const spaced = (name: string) => name.replace(/ .*/, (rest) => rest.replaceAll('_', ' '));
  return new Map([...names].map(([text, name]) => [text, spaced(name)]));
}
