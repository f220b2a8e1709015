// Which dialog an act opens.
import type { Explanation, Resource } from '../../api/types';
import { Again } from './again';
import { Decide } from './decide';
import { Delete } from './delete';
import { Look } from './look';
import { Run } from './run';
import { Undo } from './undo';
import './act.css';

export type Act = 'run' | 'look' | 'force' | 'delete' | 'decide' | 'undo' | 'again';

export type ActProps = {
    resource: Resource;
    explanation: Explanation | undefined;
    onClose: () => void;
};

export function ActDialog(props: ActProps & { act: Act; op: string | null; site: string | null }) {
    const { act, op, site, ...shared } = props;
    switch (act) {
        case 'run':
        case 'force':
            return <Run {...shared} force={act === 'force'} />;
        case 'look':
            return <Look {...shared} />;
        case 'delete':
            return <Delete {...shared} />;
        case 'decide':
            return op ? <Decide {...shared} op={op} site={site} /> : null;
        case 'again':
            return op ? <Again {...shared} op={op} /> : null;
        case 'undo':
            return op ? <Undo {...shared} op={op} /> : null;
    }
}
