/**
 * The only door to the program: no other file imports `@tauri-apps/*` or calls the bindings.
 * Every failure leaves here as one `HostError` that carries a `Problem`; callers branch on `problem.code`.
 */
import { commands, events, PROBLEMS } from './bindings';
import type { LoginForm, Overview, Preferences, Problem, TaskDetail, TaskPage, TaskQuery } from './bindings';

/** What went wrong, with its cause and next step in both languages. */
export class HostError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(`${problem.code}: ${problem.en.cause} ${problem.detail}`);
    this.name = 'HostError';
    this.problem = problem;
  }
}

const INTERNAL = 'INTERNAL';
const known = new Map<string, Problem>((PROBLEMS as readonly Problem[]).map((problem) => [problem.code, problem]));

/** The sentences of an error code that was stored with a task; `null` when this version does not know the code. */
export function knownProblem(code: string, detail: string): Problem | null {
  const found = known.get(code);
  return found ? { ...found, detail } : null;
}

/** As the program does it: an unknown code is shown as an internal problem that keeps code and message. */
export function problemFromCode(code: string, message: string | null): Problem {
  return knownProblem(code, message ?? '') ?? internal(`${code}: ${message ?? ''}`);
}

/** Anything thrown, as a problem. */
export function problemOf(error: unknown): Problem {
  return error instanceof HostError ? error.problem : internal(error instanceof Error ? error.message : String(error));
}

function internal(detail: string): Problem {
  const found = known.get(INTERNAL);
  if (!found) throw new Error('the bindings lost the INTERNAL problem');
  return { ...found, detail };
}

type Answer<T> = { status: 'ok'; data: T } | { status: 'error'; error: Problem };

function isProblem(value: unknown): value is Problem {
  return typeof value === 'object' && value !== null && 'code' in value && 'zh' in value && 'en' in value;
}

async function ask<T>(call: Promise<Answer<T>>): Promise<T> {
  let failure: unknown;
  try {
    const answer = await call;
    if (answer.status === 'ok') return answer.data;
    failure = answer.error;
  } catch (error) {
    failure = error;
  }
  // A refusal of the frame itself (unknown command, wrong argument) is a bare string.
  throw new HostError(isProblem(failure) ? failure : problemOf(failure));
}

export const host = {
  /** Resolves once the program runs; asking again after a failure tries again. */
  boot: (): Promise<null> => ask(commands.boot()),
  overview: (): Promise<Overview> => ask(commands.overview()),
  taskList: (query: TaskQuery): Promise<TaskPage> => ask(commands.taskList(query)),
  taskDetail: (id: number): Promise<TaskDetail> => ask(commands.taskDetail(id)),
  /** A `data:` address. */
  artifactImage: (id: number): Promise<string> => ask(commands.artifactImage(id)),
  startWork: (): Promise<null> => ask(commands.startWork()),
  stopWork: (): Promise<null> => ask(commands.stopWork()),
  login: (form: LoginForm): Promise<null> => ask(commands.login(form)),
  logout: (): Promise<null> => ask(commands.logout()),
  recollect: (id: number): Promise<null> => ask(commands.recollect(id)),
  phoneAddress: (): Promise<string> => ask(commands.phoneAddress()),
  setPhoneAddress: (address: string): Promise<null> => ask(commands.setPhoneAddress(address)),
  preferences: (): Promise<Preferences> => ask(commands.preferences()),
  setPreferences: (preferences: Preferences): Promise<null> => ask(commands.setPreferences(preferences)),
  /** Calls `look` whenever something shown may have changed. Returns what ends the listening. */
  onChanged: (look: () => void): Promise<() => void> => events.changed.listen(() => look()),
};
