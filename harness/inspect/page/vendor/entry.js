import * as core from "echarts/core";
import { BarChart, CustomChart, GraphChart, ScatterChart } from "echarts/charts";
import { AriaComponent, DataZoomComponent, GridComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";
core.use([BarChart, CustomChart, GraphChart, ScatterChart, AriaComponent, DataZoomComponent, GridComponent, MarkLineComponent, TooltipComponent, CanvasRenderer]);
export const { init, version } = core;
