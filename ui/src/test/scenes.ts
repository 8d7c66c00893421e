/** States of the desk to look at with `npm run dev`: open `/?scene=login` and the like. */
import { installFake } from './fake';
import * as sample from './sample';

const nothing = { counts: [], total: 0 };

const scenes: Record<string, () => void> = {
  login: () =>
    installFake({
      items: [],
      overview: sample.overview({
        ...nothing,
        loggedInAs: null,
        demo: false,
        work: 'stopped',
        server: { level: 'off', subject: '', problem: null },
        phone: {
          level: 'error',
          subject: '192.168.0.20:5555',
          problem: sample.problem('ADB_UNREACHABLE', 'connection refused'),
        },
        pinduoduo: { level: 'off', subject: '', problem: null },
        outbox: { level: 'ok', subject: '', problem: null },
      }),
    }),
  empty: () => installFake({ items: [], overview: sample.overview({ ...nothing, work: 'stopped' }) }),
  trouble: () => {
    const fake = installFake();
    const workProblem = sample.problem('DEVICE_GONE', 'phone demo-phone: closed the connection');
    fake.overview = {
      ...fake.overview,
      work: 'retry_paused',
      workProblem,
      current: null,
      sessionOnlySecrets: true,
      server: {
        level: 'warn',
        subject: 'https://server.test',
        problem: sample.problem('SERVER_UNREACHABLE', 'timed out'),
      },
      phone: { level: 'error', subject: '192.168.0.20:5555', problem: workProblem },
      pinduoduo: { level: 'busy', subject: '7.12.0', problem: null },
    };
  },
  'start-failed': () =>
    void installFake({
      refuse: new Map([['boot', sample.problem('SECOND_INSTANCE', 'data folder D:\\CMAutoBuy\\data is locked')]]),
    }),
};

export function installScene(name: string): void {
  const scene = scenes[name];
  if (scene) scene();
  else installFake();
}
