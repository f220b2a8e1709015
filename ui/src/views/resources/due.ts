// What is to be looked at again: rows that changed, and strangers that may belong among them by now.

/** By id, with the type of the operation that was heard of, if any. */
type Heard = Map<string, string | null>;

export class Due {
    private readonly rows: Heard = new Map();
    private readonly strangers: Heard = new Map();

    constructor(private readonly mostStrangers: number) {}

    row(id: string, type: string | null): void {
        keep(this.rows, id, type);
    }

    /** False if there are too many to look at one by one: all of them are forgotten then. */
    stranger(id: string, type: string | null): boolean {
        keep(this.strangers, id, type);
        if (this.strangers.size <= this.mostStrangers) return true;
        this.strangers.clear();
        return false;
    }

    /** Takes those out that are wanted now, so that what is heard from here on makes them due again. */
    take(isWanted: (id: string) => boolean, most: number): Heard {
        const taken: Heard = new Map();
        for (const heard of [this.rows, this.strangers]) {
            for (const [id, type] of heard) {
                if (taken.size === most) return taken;
                if (!isWanted(id)) continue;
                keep(taken, id, type);
                heard.delete(id);
            }
        }
        return taken;
    }

    /** For those that could not be looked at; what was heard of them since is newer. */
    putBack(taken: Heard): void {
        for (const [id, type] of taken) this.row(id, this.rows.get(id) ?? type);
    }

    clear(): void {
        this.rows.clear();
        this.strangers.clear();
    }
}

function keep(heard: Heard, id: string, type: string | null): void {
    heard.set(id, type ?? heard.get(id) ?? null);
}
