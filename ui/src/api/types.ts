// Short names for what the agent's OpenAPI document describes.
import type { components } from './schema';

type Schemas = components['schemas'];

export type Action = Schemas['Action'];
export type Body = Schemas['Body'];
/** With how its resource stands now, where the feed tells that. */
export type Change = Schemas['Change'] &
    Pick<Schemas['TimedChange'], 'now' | 'detail'> &
    Partial<Pick<Schemas['TimedChange'], 'at'>>;
export type ChangeDetail = Schemas['ChangeDetail'];
export type ConfigFinding = Schemas['ConfigFinding'];
export type Cross = Schemas['Cross'];
export type CrossSeen = Schemas['CrossSeen'];
export type CrossValue = Schemas['CrossValue'];
export type CrossPart = Schemas['CrossPart'];
export type DecidedPair = Schemas['DecidedPair'];
export type Decision = Schemas['Decision'];
export type Delete = Schemas['Delete'];
export type Demo = Schemas['Demo'];
export type DemoLink = Schemas['DemoLink'];
export type DemoSite = Schemas['DemoSite'];
export type DryRun = Schemas['DryRun'];
export type ExplainedOperation = Schemas['ExplainedOperation'];
export type Explanation = Schemas['Explanation'];
export type FileSent = Schemas['File'];
export type Forecast = Schemas['Forecast'];
export type ForecastOperation = Schemas['ForecastOperation'];
export type Header = Schemas['Header'];
export type History = Schemas['History'];
export type HistoryItem = Schemas['HistoryItem'];
export type HttpRequest = Schemas['HttpRequest'];
export type InSequence = Schemas['InSequence'];
export type LeftOut = Schemas['LeftOut'];
export type MatrixPair = Schemas['MatrixPair'];
export type MatrixTrial = Schemas['MatrixTrial'];
export type NumberedChange = Schemas['NumberedChange'];
export type Operation = Schemas['Operation'];
export type OperationRecord = Schemas['OperationRecord'];
export type PastOperations = Schemas['PastOperations'];
export type Profile = Schemas['Profile'];
export type Progress = Schemas['Progress'];
export type Replaces = Schemas['Replaces'];
export type Replicant = Schemas['Replicant'];
export type Reply = Schemas['Reply'];
export type ReplyStatus = Schemas['ReplyStatus'];
export type Resource = Schemas['Resource'];
export type ResourceState = Schemas['ResourceState'];
export type ResourceSummary = Schemas['ResourceSummary'];
export type RecordedBody = Schemas['RecordedBody'];
export type RunSite = Schemas['RunSite'];
export type SaidBeside = Schemas['SaidBeside'];
export type Unverified = Schemas['Unverified'];
export type Settle = Schemas['Settle'];
export type ShellCommand = Schemas['ShellCommand'];
export type Show = Schemas['Show'];
export type ShowAnswer = Schemas['ShowAnswer'];
export type ShowStatus = Schemas['ShowStatus'];
export type Shown = Schemas['Shown'];
export type Site = Schemas['Site'];
export type SiteReply = Schemas['SiteReply'];
export type SiteStanding = Schemas['SiteStanding'];
export type SiteState = Schemas['SiteState'];
export type Sites = Schemas['Sites'];
export type Standing = Schemas['Standing'];
export type Submit = Schemas['Submit'];
export type SubmitEvent = Schemas['SubmitEvent'];
export type Summary = Schemas['Summary'];
export type TryMatrix = Schemas['TryMatrix'];
export type Wait = Schemas['Wait'];
export type Which = Schemas['Which'];
export type WouldFollow = Schemas['WouldFollow'];
export type WireProblem = Schemas['Problem'];

export interface Page<T> {
    items: T[];
    next?: string | null;
}
